"""An authorization server of the town that takes the grants of machines."""

from contextlib import asynccontextmanager

from oauth_town import town


def employ(authority):
    """Have an authorization server take every grant of machines."""

    def token(form):
        authority.forms.append(form)
        kind = form["grant_type"]
        if kind in authority.refusal:
            return 400, {"error": authority.refusal[kind]}
        answer = authority.issued(authority.grants(frozenset(form.get("scope", "").split())))
        del answer["refresh_token"]
        return 200, answer

    authority.token = token


@asynccontextmanager
async def working_town():
    """A town whose authorization server gives machines what they ask for."""
    async with town() as here:
        employ(here.authority)
        yield here
