"""Every type of the wire, by its name in the specification, in the newest shape.

``XRequestParams`` and ``XNotificationParams`` of the schema are ``XParams`` here.
"""

from isthmus.wire import *  # noqa: F403 - this module is that list under its public name
from isthmus.wire import __all__  # noqa: F401 - the same list
