"""A client that an authorization server was told about beforehand."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.auth.client_identity import Identity
from isthmus.auth.names import METHODS
from isthmus.auth.secret import Secret
from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.auth.jose import PrivateKey

__all__ = ["StaticClient"]


class StaticClient:
    """A client that somebody registered at an authorization server, by hand or by a form there.

    Example::

        StaticClient("desktop-app")
        StaticClient("report-job", secret=os.environ["REPORT_SECRET"])
        StaticClient("report-job", key=PrivateKey(pem, alg="ES256"))

    Args:
        client_id: what it is called there.
        secret: the secret it was given.
        key: the private key whose public half the authorization server knows.
        method: how it authenticates at the token endpoint: ``none``, ``client_secret_basic``,
            ``client_secret_post`` or ``private_key_jwt``; None takes the best that both can.

    Raises:
        UsageError: it has no name, its key is no ``PrivateKey``, or a method is named that does
            not go with what it has.
    """

    def __init__(
        self,
        client_id: str,
        *,
        secret: Secret | str | None = None,
        key: "PrivateKey | None" = None,
        method: str | None = None,
    ) -> None:
        if not client_id:
            raise UsageError("a client that is registered has a client_id: give its text")
        if method is not None and method not in METHODS:
            raise UsageError(f"method={method!r}: it is one of {', '.join(sorted(METHODS))}")
        if isinstance(key, str | bytes | Mapping):
            raise UsageError(f"key= of {client_id!r} is PrivateKey(…) of that, and not its text")
        for named, given, wanted in (
            ("private_key_jwt", key, "key=PrivateKey(…)"),
            ("client_secret_basic", secret, "secret=…"),
            ("client_secret_post", secret, "secret=…"),
        ):
            if method == named and given is None:
                raise UsageError(f"{client_id!r} is to authenticate by {method}: give it {wanted}")
        self.client_id = client_id
        self.identity = Identity(
            client_id=client_id,
            method=method,
            secret=None if secret is None else Secret(secret),
            key=key,
        )

    def __repr__(self) -> str:
        return f"StaticClient({self.client_id!r})"
