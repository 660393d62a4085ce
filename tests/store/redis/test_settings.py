"""Settings of Redis that would lose data are named when a store is opened, with what mends them."""

import datetime as dt
import ipaddress
from functools import partial

import pytest

from isthmus.errors import UsageError
from isthmus.store.store import StoreUnavailable
from support.ports import find_free_port
from support.store.redis_links import FalseRedis, format_bulk, format_time

pytestmark = pytest.mark.redis


async def test_a_server_that_is_set_up_well_is_opened_in_silence(redis, open_store, caplog):
    """Ours: no warning where nothing is wrong, also where what is stored must be kept."""
    store = await open_store(redis.url, durable=True)
    await store.open()

    assert [] == caplog.records


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl", "allkeys-random"])
async def test_a_server_that_drops_what_is_stored_is_refused(start_redis, open_store, policy):
    """Ours: scale.md B3: sessions must not vanish at random."""
    server = start_redis(maxmemory_policy=policy)
    with pytest.raises(UsageError, match="redis-cli CONFIG SET maxmemory-policy noeviction"):
        await open_store(server.url)
    server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")

    await open_store(server.url)


async def test_a_server_that_forgets_is_refused_where_tasks_are_kept(
    start_redis, open_store, caplog
):
    """Ours: an error where tools have tasks, and a warning where clients can begin anew."""
    server = start_redis(appendonly="no")
    with pytest.raises(UsageError, match="redis-cli CONFIG SET appendonly yes"):
        await open_store(server.url, durable=True)
    assert [] == caplog.records
    await open_store(server.url)

    assert "redis-cli CONFIG SET appendonly yes" in caplog.text


async def test_a_cluster_is_refused(start_redis, open_store):
    """Ours: a script needs all its keys at one place."""
    with pytest.raises(UsageError, match="cluster-enabled no"):
        await open_store(start_redis(cluster_enabled="yes").url)


async def test_a_replica_is_refused(start_redis, open_store):
    """Ours: it cannot be written, and whoever reads is told which server can."""
    server = start_redis()
    server.ask("REPLICAOF", "192.0.2.7", "6390")

    with pytest.raises(UsageError, match=r"name the primary \(192\.0\.2\.7:6390\)"):
        await open_store(server.url)


async def test_a_password_that_is_missing_or_wrong_is_told(start_redis, open_store, caplog):
    """Ours: it is named as such, and what was written as the password stands nowhere."""
    server = start_redis()
    server.ask("CONFIG", "SET", "requirepass", "s3cret-right")
    with pytest.raises(UsageError, match="wants a password"):
        await open_store(server.url)
    with pytest.raises(UsageError, match="does not take this password") as refused:
        await open_store(f"{server.url}?password=s3cret-wrong")
    store = await open_store(f"{server.url}?password=s3cret-right")

    assert "s3cret" not in f"{refused.value}{caplog.text}{store.name}{store._client.address!r}"
    assert await store.kv.put("a", b"1")


async def test_a_user_of_its_own_needs_what_the_page_says(start_redis, open_store):
    """Ours: the command in docs/reference/store-settings.md gives enough, and no other keys."""
    server = start_redis()
    server.ask(
        *("ACL", "SETUSER", "acme", "on", ">pw", "~acme:*", "&acme:*", "+@read", "+@write"),
        *("+@scripting", "+@pubsub", "+@connection", "+time", "-@dangerous", "+info"),
    )
    url = f"{server.url}?username=acme&password=pw"
    store = await open_store(f"{url}&prefix=acme:", durable=True)
    heard = []
    await store.bus.subscribe("news", heard.append)
    assert await store.kv.put("a", b"1")
    assert 1 == len(await store.kv.scan("", "", 10))
    assert await store.bus.publish("news", b"1")
    await store.log.write("s", 1, [b"1"])
    other = await open_store(f"{url}&prefix=other:")

    with pytest.raises(StoreUnavailable, match="NOPERM"):
        await other.kv.get("a")
    with pytest.raises(StoreUnavailable, match="subscribe"):
        await other.bus.subscribe("news", heard.append)


async def test_a_user_who_may_run_no_scripts_is_told(start_redis, open_store):
    """Ours: at start, with the command that mends it."""
    server = start_redis()
    server.ask("ACL", "SETUSER", "acme", "on", ">pw", "~*", "&*", "+@all", "-@scripting")

    with pytest.raises(UsageError, match=r"\+@scripting"):
        await open_store(f"{server.url}?username=acme&password=pw")


async def test_a_service_that_says_nothing_of_itself_is_warned_of(start_redis, open_store, caplog):
    """Ours: what cannot be looked at is named, and is no error."""
    server = start_redis()
    server.ask("ACL", "SETUSER", "acme", "on", ">pw", "~*", "&*", "+@all", "-info", "-config")
    await open_store(f"{server.url}?username=acme&password=pw", durable=True)

    assert "maxmemory-policy is noeviction, appendonly is yes" in caplog.text


async def test_a_database_that_is_not_there_is_told(start_redis, open_store):
    """Ours: with the setting that says how many there are."""
    server = start_redis(databases="2")
    store = await open_store(f"{server.url}?db=1")
    await store.kv.put("a", b"1")

    assert await (await open_store(server.url)).kv.get("a") is None
    with pytest.raises(UsageError, match="has no database 7"):
        await open_store(f"{server.url}?db=7")


async def test_a_server_that_is_not_there_is_told(open_store, folder):
    """Ours: nobody waits for it longer than the time to connect."""
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await open_store(f"unix://{folder}/none.sock")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await open_store("redis://127.0.0.1:1/0")


def answer_info(version):
    """What a server of a version says of itself."""
    return format_bulk(
        f"# Server\r\nredis_version:{version}\r\nredis_mode:standalone\r\nrole:master\r\n"
        "maxmemory_policy:noeviction\r\naof_enabled:1\r\n"
    )


async def test_an_old_server_is_refused(open_store, folder):
    """Ours: scale.md B3: below 6.2."""
    async with FalseRedis(folder / "r.sock", INFO=answer_info("6.0.20")) as old:
        with pytest.raises(UsageError, match=r"is Redis 6\.0\.20, and isthmus needs 6\.2"):
            await open_store(old.url)


@pytest.mark.parametrize(("offset", "is_told"), [(-300, True), (300, True), (1, False)])
async def test_clocks_that_differ_are_warned_of(open_store, folder, caplog, offset, is_told):
    """Ours: scale.md B6: leases follow the server's, and what follows ours is named."""
    answers = {"INFO": answer_info("7.0.15"), "TIME": lambda words: format_time(offset)}
    async with FalseRedis(folder / "r.sock", **answers) as server:
        await open_store(server.url)

        assert is_told == ("timedatectl set-ntp true" in caplog.text)


# --- TLS ------------------------------------------------------------------------------------


def write_certificate(folder):
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    encode = partial(
        key.private_bytes,
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(encode())
    (folder / "ca.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


async def test_an_encrypted_connection_is_made_and_its_certificate_checked(
    start_redis, open_store, folder
):
    """Ours: `rediss://` trusts nobody whose certificate it cannot check."""
    write_certificate(folder)
    port = find_free_port()
    start_redis(
        tls_port=str(port),
        tls_cert_file=str(folder / "ca.pem"),
        tls_key_file=str(folder / "key.pem"),
        tls_auth_clients="no",
    )
    url = f"rediss://127.0.0.1:{port}/0"
    store = await open_store(f"{url}?ssl_ca_certs={folder}/ca.pem")
    heard = []
    await store.bus.subscribe("news", heard.append)
    assert await store.kv.put("a", b"x" * 1_000_000)
    assert 1_000_000 == len((await store.kv.get("a")).value)

    with pytest.raises(UsageError, match="ssl_ca_certs"):
        await open_store(url)
    with pytest.raises(UsageError, match=r"certificates for .* cannot be read"):
        await open_store(f"{url}?ssl_ca_certs={folder}/none.pem")


async def test_a_server_that_does_not_encrypt_is_told_of(start_redis, open_store):
    """Ours: `rediss://` at a plain port fails with a reason."""
    port = find_free_port()
    start_redis(port=str(port))
    await open_store(f"redis://127.0.0.1:{port}/0")

    with pytest.raises((UsageError, StoreUnavailable), match=r"TLS|cannot be reached"):
        await open_store(f"rediss://127.0.0.1:{port}/0")
