"""Secrets in command lines and other texts, in the forms in which people and models write them."""

import json
from urllib.parse import quote

import pytest

from isthmus.core.redaction.texts import redact_text
from isthmus.core.redaction.values import Redactor

FORMS = {
    "flag and word": "deploy --token {} --region eu",
    "flag with equals": "deploy --token={} --region eu",
    "flag with an equals sign and double quotes": 'deploy --api-key="{}" --region eu',
    "flag and double quotes": 'deploy --password "{}" --region eu',
    "flag and single quotes": "deploy --client-secret '{}' --region eu",
    "flag with one dash": "deploy -Password {} -Region eu",
    "flag at the end": "deploy --region eu --access-token {}",
    "variable before a command": "API_TOKEN={} deploy --region eu",
    "export": "export API_TOKEN={}; deploy --region eu",
    "export in quotes": "export API_TOKEN='{}' && deploy --region eu",
    "key in capitals": "STRIPE_KEY={} deploy --region eu",
    "header in single quotes": "curl -H 'Authorization: Bearer {}' https://x.example/eu",
    "header in double quotes": 'curl -H "Authorization: Bearer {}" https://x.example/eu',
    "header without a scheme": "curl -H 'Authorization: {}' https://x.example/eu",
    "header in escaped quotes": 'sh -c "curl -H \\"Authorization: Bearer {}\\" https://x.example/eu"',
    "header with one's own scheme": "curl -H 'Authorization: Token token={}' https://x.example/eu",
    "header of basic": "curl -H 'authorization: basic {}' https://x.example/eu",
    "proxy header": "curl -H 'Proxy-Authorization: Basic {}' https://x.example/eu",
    "other header": "curl -H 'X-Api-Key: {}' https://x.example/eu",
    "cookie header": "curl -H 'Cookie: theme=dark; session={}' https://x.example/eu",
    "cookie flag": "curl --cookie 'session={}' https://x.example/eu",
    "bearer flag": "curl --oauth2-bearer {} https://x.example/eu",
    "scheme alone": "use Bearer {} for eu",
    "user and password": "curl -u ada:{} https://x.example/eu",
    "user and password in quotes": "curl -u 'ada:{}' https://x.example/eu",
    "user and password, glued": "curl -uada:{} https://x.example/eu",
    "user and password, long": "curl --user ada:{} https://x.example/eu",
    "user and password, proxy": "curl --proxy-user=ada:{} https://x.example/eu",
    "user of a share": "smbclient //eu/share -U ada%{}",
    "mysql": "mysql -h eu -u root -p{} app",
    "sshpass": "sshpass -p {} ssh eu",
    "docker login": "docker login -u ada -p {} eu.example",
    "redis": "redis-cli -h eu -a {} ping",
    "ldap": "ldapsearch -H ldap://eu -D cn=ada -w {}",
    "password of a file": "openssl rsa -in eu.pem -passin pass:{}",
    "echo into a login": "echo {} | docker login --password-stdin eu.example",
    "URL userinfo": "git clone https://ada:{}@git.example/eu.git",
    "URL userinfo, token alone": "git clone https://{}@git.example/eu.git",
    "URL query": "curl 'https://x.example/eu?access_token={}&page=2'",
    "URL query, key": "curl https://x.example/eu?page=2&key={}",
    "URL fragment": "open https://x.example/eu#id_token={}",
    "heredoc of a dotenv": "cat > .env <<EOF\nREGION=eu\nDB_PASSWORD={}\nEOF",
    "heredoc of YAML": "cat <<'EOF' | kubectl apply -f -\nregion: eu\npassword: {}\nEOF",
    "heredoc of JSON": 'curl -d @- https://x.example/eu <<EOF\n{{"client_secret": "{}"}}\nEOF',
    "netrc": "machine eu.example login ada password {}",
    "PowerShell variable": '$env:API_TOKEN = "{}"; deploy eu',
    "PowerShell variable, glued": "$env:API_TOKEN='{}'; deploy eu",
    "PowerShell secure string": "ConvertTo-SecureString '{}' -AsPlainText -Force # eu",
    "set of cmd": "set API_TOKEN={}&& deploy eu",
    "setx": "setx API_TOKEN {} & rem eu",
    "set of fish": "set -gx API_TOKEN {}; deploy eu",
    "setenv": "setenv API_TOKEN {}; deploy eu",
    "configured": "aws configure set aws_secret_access_key {} --region eu",
    "literal of a secret": "kubectl create secret generic eu --from-literal=password={}",
    "JSON in a text": 'POST {{"user": "ada", "token": "{}", "region": "eu"}}',
    "JSON without blanks": '{{"region":"eu","password":"{}","user":"ada"}}',
    "JSON within JSON": '{{"body": "{{\\"password\\": \\"{}\\"}}", "region": "eu"}}',
    "JSON of headers": 'fetch(x, {{headers: {{"Authorization": "Bearer {}"}}}}) // eu',
    "JSON of names and values": '{{"env": [{{"name": "API_TOKEN", "value": "{}"}}], "region": "eu"}}',
    "Python": "requests.get(eu, headers={{'Authorization': 'Bearer {}'}})",
    "Python keyword": "connect(host='eu', password='{}')",
    "call with a name": 'SetEnvironmentVariable("API_TOKEN", "{}", "eu")',
    "Ruby": "{{:region => 'eu', :password => '{}'}}",
    "XML": "<server region='eu'><password>{}</password></server>",
    "INI": "[eu]\npassword = {}",
    "connection string": "Server=eu;Database=app;User Id=ada;Password={};",
}  # fmt: skip

SECRETS = {
    "a word": "hunter",
    "short": "xyz",
    "with digits": "hunter2horse7",
    "Basic in base64": "YWRhOmh1bnRlcg==",
    "with signs": "p@ss.w0rd!#x",
}
SPACED = ("flag and double quotes", "flag and single quotes", "export in quotes", "JSON in a text",
          "JSON without blanks", "PowerShell variable", "Python keyword")  # fmt: skip


@pytest.mark.covers("hostaudit.redaction.forms")
@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("name", FORMS)
def test_no_form_of_a_command_leaks_its_secret(name, secret):
    """Ours: nothing of the secret stays, and the rest of the command does."""
    form = FORMS[name]
    secret = quote(secret, "") if name.startswith("URL userinfo") else secret
    said = redact_text(form.format(secret))
    beside = form.replace("{}", "").replace("{{", "{").replace("}}", "}")

    assert "[redacted]" in said
    assert secret not in said
    assert [] == [part for part in ("p@ss", "w0rd", "2horse") if part in said]
    if secret not in beside:
        assert "eu" in said


@pytest.mark.covers("hostaudit.redaction.forms")
@pytest.mark.parametrize("name", SPACED)
def test_a_secret_with_blanks_in_quotes_goes_whole(name):
    """Ours: up to the quote that ends it."""
    said = redact_text(FORMS[name].format("correct horse battery"))

    assert [] == [word for word in ("correct", "horse", "battery") if word in said]
    assert "eu" in said


@pytest.mark.covers("hostaudit.redaction.forms")
def test_quotes_that_are_put_together_as_a_shell_does_hide_nothing():
    """Ours: a word of a shell may consist of several pieces."""
    said = redact_text("""deploy --token 'abc'"def"ghi\\ jkl eu; export TOKEN="a\\"b"c eu""")

    assert "deploy --token [redacted] eu; export TOKEN=[redacted] eu" == said


@pytest.mark.covers("hostaudit.redaction.forms")
@pytest.mark.parametrize(
    "value",
    [
        {"env": [{"name": "API_TOKEN", "value": "hunter"}]},
        {"headers": [{"key": "Authorization", "value": "Bearer hunter"}]},
        {"headers": [["Authorization", "Bearer hunter"], ["Accept", "text/plain"]]},
        {"args": ["--region", "eu", "--token", "hunter"]},
        {"args": ["-H", "Authorization: Bearer hunter"]},
        {"args": ["sh", "-c", "deploy --token hunter"]},
        {"args": ["-u", "ada:hunter"]},
        {"body": json.dumps({"deep": json.dumps({"password": "hunter"})})},
    ],
)
def test_names_and_values_that_stand_apart_belong_together(value):
    """Ours: as environments, headers and command lines are passed on as data."""
    said = json.dumps(Redactor(secrets=tuple).redact(value))

    assert "hunter" not in said
    assert "[redacted]" in said


@pytest.mark.parametrize(
    "text",
    [
        "docker run -u 1000:1000 image",
        "curl -u https://x.example/a",
        "mkdir -p /srv/data && ls -a -w 80",
        "ssh -p 2222 host",
        "git log --author ada --pretty=oneline",
        "echo done | tee out.txt",
        "python -m pytest -p no:randomly",
        "sort --key 2 --field-separator ,",
        "the passage: a token of appreciation",
        "Bearer tokens are sent in a header",
        "deploy --token-file /run/secrets/x --password-stdin",
        "COPY --chown=app:app . /srv",
    ],
)
def test_ordinary_commands_stay_as_they_are(text):
    """Ours: what a command does has to be seen."""
    assert text == redact_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "--token " * 20_000, 'password="' * 20_000, "password='" * 20_000 + '"',
        "mysql " * 20_000, "-u a" * 20_000, "Authorization: \\" * 20_000, "login x " * 20_000,
        "A_" * 40_000, "echo a " * 20_000, "(" * 50_000 + '"token"', "set -x " * 20_000,
        "-" * 100_000, "<token" * 20_000, "\\" * 100_000, 'token\\"' * 20_000, "name" * 30_000,
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
@pytest.mark.timeout(20)
def test_no_text_takes_long(text):
    """Ours: every pattern takes time in proportion to the text, whatever it is."""
    assert redact_text(text) is not None
