"""Pages that a user must visit before a call can succeed: by an error, or by a question."""

import os
from typing import Any

from msgspec import Raw

from isthmus.errors import Refuse, UrlRequired
from isthmus.revisions import project
from isthmus.revisions.codes import url_required_code
from isthmus.runtime.inbound import Inbound
from isthmus.server.needs import require
from isthmus.wire import ElicitParams, InputRequest, InputRequiredResult
from isthmus.wire.jsonrpc import encode

__all__ = ["demanded"]


def demanded(need: UrlRequired, inbound: Inbound, changes: Any) -> InputRequiredResult:
    """The pages a body demands, as questions after whose answers it runs again.

    Args:
        need: what the body raised.
        inbound: the call.
        changes: remembers whom to tell when a page was dealt with.

    Raises:
        Refuse: the revision has an error for it (2025-11-25).
        CapabilityMissing: the client opens no pages.
    """
    revision = inbound.caller.revision
    pages = [
        ElicitParams(mode="url", url=url, message=why, elicitation_id=os.urandom(16).hex())
        for url, why in need.pages
    ]
    for page in pages:
        require(inbound.caller, "elicitation/create", page)
    code = url_required_code(revision)
    if code is None:
        return InputRequiredResult(
            input_requests={
                f"page{number}": InputRequest(
                    method="elicitation/create", params=Raw(encode(project(page, revision)))
                )
                for number, page in enumerate(pages, 1)
            }
        )
    for page in pages:
        changes.sent_to_page(inbound.link, page.elicitation_id)
    # spec 2025-11-25 client/elicitation#url-elicitation-required-error: MUST list elicitations of
    # URL mode, each with an elicitationId
    raise Refuse(code, str(need), {"elicitations": pages}) from need
