"""Store in Redis or Valkey, for nodes on several machines."""

from isthmus.errors import UsageError
from isthmus.store.log import LogLimits
from isthmus.store.meter import Rate
from isthmus.store.redis.address import parse_redis_url
from isthmus.store.redis.bus import RedisBus
from isthmus.store.redis.client import RedisClient
from isthmus.store.redis.connection import RedisMisconfigured
from isthmus.store.redis.primitives import RedisKV, RedisLog, RedisMeter
from isthmus.store.redis.settings import check_settings


class RedisStore:
    """A store in Redis or Valkey.

    Args:
        url: where it is: ``redis://USER:PASSWORD@HOST:PORT/DB?prefix=NAME:``, ``rediss://…`` for
            TLS, ``unix:///PATH?db=DB``.
        log_limits: bounds of the log.

    Attributes:
        name: the URL without a password.
        kv: values by key.
        log: what was said on streams.
        bus: messages to all who listen.

    Raises:
        UsageError: the URL says something else.
    """

    def __init__(self, url: str, *, log_limits: LogLimits | None = None) -> None:
        address = parse_redis_url(url)
        self.name = address.name
        self._prefix = address.prefix
        self._client = RedisClient(address)
        self._meters: dict[str, RedisMeter] = {}
        self.kv = RedisKV(self._client, address.prefix)
        self.log = RedisLog(self._client, address.prefix, log_limits or LogLimits())
        self.bus = RedisBus(self._client, address.prefix)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def meter(self, name: str, rate: Rate) -> RedisMeter:
        """A meter that all processes share; see :meth:`~isthmus.store.store.Store.meter`.

        Args:
            name: the limit; meters of one name count together.
            rate: the rate that each key is allowed.
        """
        known = self._meters.get(name)
        if known is None or known.rate != rate:
            known = self._meters[name] = RedisMeter(self._client, self._prefix, name, rate)
        return known

    async def open(self, *, durable: bool = False) -> None:
        """Connect, and see that the server keeps what it is given.

        Args:
            durable: whether what is stored must outlive the server, as tasks must.

        Raises:
            UsageError: a setting of the server would lose data, or it does not let us in; the
                message names what mends it.
            StoreUnavailable: it cannot be reached.
        """
        try:
            await self._client.open()
        except RedisMisconfigured as error:
            raise UsageError(str(error)) from None
        await check_settings(self._client, durable=durable)

    async def close(self) -> None:
        """Close the connections; the store may be opened again."""
        await self.bus.close()
        await self._client.close()
