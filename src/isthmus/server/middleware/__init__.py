"""Middleware of servers: typed hooks, and layers that are ready to use.

``Server(middleware=[Timing(), Caching(60)])``, or ``server.use(…)``. Rates of callers are no
middleware but a setting: ``Server(limits=Limits(tool_calls=Rate(60, seconds=60)))``.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import CallNext as RawCallNext
from isthmus.runtime.middleware import Middleware as RawMiddleware
from isthmus.server.middleware.hooks import CallNext, Middleware, MiddlewareContext, ToolOutcome

if TYPE_CHECKING:
    from isthmus.server.middleware.concurrency import Concurrency as Concurrency
    from isthmus.server.middleware.deadline import Deadline as Deadline
    from isthmus.server.middleware.hook_layer import ServerParts as ServerParts
    from isthmus.server.middleware.max_result import MaxResult as MaxResult
    from isthmus.server.middleware.request_log import Logging as Logging
    from isthmus.server.middleware.response_cache import Caching as Caching
    from isthmus.server.middleware.retry import Retry as Retry
    from isthmus.server.middleware.timing import RequestTiming as RequestTiming
    from isthmus.server.middleware.timing import Timing as Timing

__all__ = [
    "Caching",
    "CallNext",
    "Concurrency",
    "Deadline",
    "Inbound",
    "Logging",
    "MaxResult",
    "Middleware",
    "MiddlewareContext",
    "RawCallNext",
    "RawMiddleware",
    "RequestTiming",
    "Retry",
    "ServerParts",
    "Timing",
    "ToolOutcome",
]

_HOMES = {
    "Caching": "isthmus.server.middleware.response_cache",
    "Concurrency": "isthmus.server.middleware.concurrency",
    "Deadline": "isthmus.server.middleware.deadline",
    "Logging": "isthmus.server.middleware.request_log",
    "MaxResult": "isthmus.server.middleware.max_result",
    "RequestTiming": "isthmus.server.middleware.timing",
    "Retry": "isthmus.server.middleware.retry",
    "ServerParts": "isthmus.server.middleware.hook_layer",
    "Timing": "isthmus.server.middleware.timing",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
