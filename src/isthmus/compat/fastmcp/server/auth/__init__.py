"""Verifiers of access tokens and checks of components, under the names of ``fastmcp.server.auth``."""

from isthmus.lazy import lazy_getattr

_AUTH = "isthmus.compat.fastmcp.server.auth"

__getattr__ = lazy_getattr(
    __name__,
    {
        **dict.fromkeys(
            ("AccessToken", "AuthProvider", "TokenVerifier", "RemoteAuthProvider"), f"{_AUTH}.auth"
        ),
        **dict.fromkeys(
            ("OAuthProvider", "OAuthProxy", "OIDCProxy", "MultiAuth", "IdentityAssertion"),
            f"{_AUTH}.providers",
        ),
        **dict.fromkeys(
            ("JWTVerifier", "StaticTokenVerifier", "BearerAuthProvider"), f"{_AUTH}.providers.jwt"
        ),
        "DebugTokenVerifier": f"{_AUTH}.providers.debug",
        **dict.fromkeys(
            (
                *("AuthCheck", "AuthContext", "run_auth_checks"),
                *("require_roles", "require_scopes", "restrict_tag"),
            ),
            "isthmus.compat.fastmcp.utilities.authorization",
        ),
    },
)
