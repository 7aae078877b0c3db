"""What is hidden in recordings and reports, and what is not: made-up values by category."""

import base64
import json

import pytest

from mcp_touchstone.runtime.secrets import (
    in_arguments,
    in_header,
    in_message,
    in_query,
    in_words,
    is_recorded,
    secrets,
)
from tests.cases import cases

MIXED = "k3Fz9qLw2Rt7"
HEX = "0f3a9c17be5d2846a1c0b9e8d7f6053c"
RANDOM = "Zk4vQ9sT1xW8bN5mR2yL7pC3"

NAMED = {
    "passwords": [
        *("DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "DB_PWD", "REDIS_PASS", "SMTP_PASSWD"),
        *("MONGO_INITDB_ROOT_PASSWORD", "dbPassword", "db.password", "SSH_KEY_PASSPHRASE"),
        *("KEYSTORE_PASS", "ADMIN_PASSCODE", "LDAP_BIND_PW", "CONTRASEÑA", "PASSWORT"),
    ],
    "keys": [
        *("API_KEY", "OPENAI_APIKEY", "apiKey", "AWS_SECRET_ACCESS_KEY", "ENCRYPTION_KEY", "KEY"),
        *("AZURE_STORAGE_KEY", "Stripe.ApiKey", "LICENSE_KEY", "SERVICE_KEY_2", "JWT_KEY1"),
        *("PRIVATE_PEM", "HMAC", "PRESHARED_PSK", "SIGNING_KEY", "SAS", "DEPLOYKEY_TOKEN"),
    ],
    "tokens": [
        *(
            "GITHUB_TOKEN",
            "accessToken",
            "NPM_AUTH",
            "_authToken",
            "BEARER",
            "OTP",
            "TOTP_CODE_OTP",
        ),
        *("GITLAB_PAT", "X_CSRF", "REFRESHTOKEN", "ID_TOKEN", "MY_JWT", "AUTHORIZATION", "AUTH"),
    ],
    "others": [
        *("CREDS", "GOOGLE_APPLICATION_CREDENTIALS_JSON", "CLIENT_SECRET", "SECRET_KEY_BASE"),
        *("SESSION", "SESSION_COOKIE", "COOKIE", "SENTRY_DSN", "SLACK_WEBHOOK", "WEBHOOK_URL"),
        *("AZURE_CONNECTION_STRING", "ConnectionStrings__Default", "SQLCONNSTR_DB", "MNEMONIC"),
        *("SEED", "WALLET_SEED_PHRASE", "SIGNATURE", "SIGNING", "SIGN", "SMTP_AUTH", "PRIVATE"),
    ],
}

UNNAMED = [
    *("PATH", "HOME", "LANG", "USER", "SHELL", "TERM", "EDITOR", "HOSTNAME"),
    *("GIT_AUTHOR_NAME", "AUTHOR", "MONKEY", "KEYBOARD_LAYOUT", "COMPASS", "BYPASS", "SIGNAL"),
    *("DESIGN", "ASSIGNEE", "PASSENGERS", "PASSIVE", "PATTERN", "DISPATCH", "SPINNER", "SEEDLING"),
    *("KEYCLOAK_URL", "TOKEN_URL", "TOKEN_ENDPOINT", "AUTH_METHOD", "SESSION_TIMEOUT", "KEY_SIZE"),
    *("SECRET_NAME", "PASSWORD_FILE", "API_KEY_HEADER", "OAUTH_CLIENT_ID", "COOKIE_DOMAIN"),
    *("TOKENIZERS_PARALLELISM", "PASSWORD_POLICY", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"),
    *("XDG_SESSION_TYPE", "SESSION_MANAGER", "PRIVATE_NETWORK", "JWT_ALGORITHM", "CSRF_HEADER"),
    *("KEY_PREFIX", "PINECONE", "OPTIONS", "CASE", "DATABASE_HOST", "LOG_LEVEL", "NODE_ENV"),
]


def hidden(name: str, value: str) -> list[str]:
    return [one for _, one in secrets({name: value})]


@pytest.mark.parametrize("name", [one for names in NAMED.values() for one in names])
@pytest.mark.parametrize("value", [MIXED, HEX, "hunter2", "p@ss:word/1"])
def test_a_variable_with_a_telling_name_is_hidden(name: str, value: str) -> None:
    assert value in hidden(name, value)


@pytest.mark.parametrize("name", UNNAMED)
@pytest.mark.parametrize("value", [MIXED, HEX, "correct horse", "hunter2hunter2"])
def test_a_variable_with_another_name_is_not_hidden(name: str, value: str) -> None:
    assert hidden(name, value) == []


@pytest.mark.parametrize(
    "value",
    [
        *("true", "None", "required", "4096", "3600s", "0.75", "512MB", "10.0.0.1", "10.0.0.0/8"),
        *(
            "/home/me/My Documents",
            "/run/secrets/api_key",
            "~/.ssh/id_rsa",
            "C:\\keys\\me.pem",
            "./token.txt",
            "/usr/bin/x",
        ),
        *("${API_KEY}", "$TOKEN", "{{ secrets.key }}", "<your key>", "********", "xxxxxxxx"),
        *("%TOKEN%", "${{ secrets.TOKEN }}", "bearer", "client_secret_basic", "api-key", "short"),
        *(
            "{port}",
            "unix:path=/run/user/0/bus",
            "tools/call",
            "initialize",
            "notifications/progress",
        ),
        *("AES-256-GCM", "HS256", "rsa-sha2-512", "abc", "", "12345"),
    ],
)
def test_a_value_that_is_evidently_no_secret_is_not_hidden(value: str) -> None:
    for name in ("API_KEY", "DB_PASSWORD", "PWD", "GIT_ASKPASS", "AUTH", "SESSION", "TOKEN"):
        assert hidden(name, value) == []


@cases(
    ("SESSION", "plasma-wayland"),
    ("SESSION", "interactive"),
    ("SIGN", "negative-positive"),
    ("SEED", "sunflower"),
    ("OAUTH", "google.workspace"),
)
def test_plain_words_under_an_ambiguous_name_are_not_hidden(name: str, value: str) -> None:
    assert hidden(name, value) == []


KEY = "MIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----"

FORMS = {
    "pem": (PEM, "MIIEvQIBADANBgkq"),
    "openssh": (PEM.replace("RSA", "OPENSSH"), "hkiG9w0BAQEFAASC"),
    "pem in one line": (PEM.replace("\n", "\\n"), PEM.replace("\n", "\\n")),
    "jwt": (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    ),
    "a list": ("Endpoint=sb://x/;SharedAccessKeyName=a;SharedAccessKey=q8Xv0Lk3", "q8Xv0Lk3"),
    "a list of ADO": ("Server=db,1433;User Id=sa;Password=Tr0ub4dor;Encrypt=True", "Tr0ub4dor"),
    "libpq": ("host=db user=me password=Tr0ub4dor sslmode=require", "Tr0ub4dor"),
    "odbc": ("Driver={x};UID=sa;PWD=Tr0ub4dor", "Tr0ub4dor"),
    "url": ("postgres://me:Tr0ub4dor@db/x", "Tr0ub4dor"),
    "url without a user": ("redis://:Tr0ub4dor@db:6379", "Tr0ub4dor"),
    "url with an odd password": ("amqp://me:Tr0ub@4dor@db/x", "Tr0ub@4dor"),
    "url with a token": (f"https://{RANDOM}@git.example/x.git", RANDOM),
    "url with a query": ("https://x.example/a?api_key=Tr0ub4dor&b=c", "Tr0ub4dor"),
    "signed url": (
        "https://x.blob.core.windows.net/c?sv=1&sig=ab%2Bcdefghijkl%3D",
        "ab%2Bcdefghijkl%3D",
    ),
    "slack": (
        "https://hooks.slack.com/services/T0/B0/abcdefghijkl",
        "https://hooks.slack.com/services/T0/B0/abcdefghijkl",
    ),
    "discord": (
        "https://discord.com/api/webhooks/123456/abcdefghijkl",
        "https://discord.com/api/webhooks/123456/abcdefghijkl",
    ),
    "teams": (
        "https://acme.webhook.office.com/webhookb2/0123-4567/IncomingWebhook",
        "https://acme.webhook.office.com/webhookb2/0123-4567/IncomingWebhook",
    ),
    "telegram": (
        "123456789:AAHabcdefghijklmnopqrstuvwxyz01234",
        "123456789:AAHabcdefghijklmnopqrstuvwxyz01234",
    ),
    "telegram url": (
        "https://api.telegram.org/bot987654:QQabcdefghijklmn/getMe",
        "987654:QQabcdefghijklmn",
    ),
    "random": (RANDOM, RANDOM),
    "header": (f"Authorization: Bearer {MIXED}", MIXED),
}


@pytest.mark.parametrize(("value", "secret"), FORMS.values(), ids=FORMS)
def test_a_value_that_has_the_form_of_a_secret_is_hidden(value: str, secret: str) -> None:
    assert secret in hidden("OTHER", value)


@pytest.mark.parametrize(
    "beginning",
    [
        *("ghp_", "gho_", "github_pat_", "glpat-", "xoxb-1-", "xapp-1-", "sk-", "sk-proj-"),
        *("sk-ant-api03-", "sk_live_", "rk_live_", "pk_test_", "npm_", "pypi-", "hf_", "AIza"),
        *("AKIA", "ASIA", "SG.", "hvs.", "dckr_pat_", "glsa_", "ntn_", "lin_api_", "shpat_"),
        *("dop_v1_", "rubygems_", "whsec_", "figd_", "PMAK-", "GOCSPX-", "gsk_", "xai-", "r8_"),
    ],
)
def test_a_token_with_a_known_beginning_is_hidden_anywhere(beginning: str) -> None:
    token = beginning + "ABCD1234EFGH5678"

    assert token in hidden("OTHER", token)
    assert token in list(in_message(f'{{"a": "see {token}, please"}}'))
    assert token in list(in_message(f"started with {token}"))


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com/path?a=b",
        "https://example.com:8080/a@b",
        "git@github.com:a/b.git",
        "sk-learn",
        "npm-run-all",
        "npm run build",
        "hf_hub",
        "pk-constraint",
        "key-value store",
        "a.b.c",
        "eyJvZmZzZXQiOjEwfQ==",
        "2026-07-28T10:00:00.000Z",
        "en_US.UTF-8",
        "x86_64-linux-gnu",
        "550e8400-e29b-41d4-a716-446655440000",
        HEX,
        "di=01;34:ln=01;36",
        "/usr/bin:/bin",
        "Bearer authentication is required",
        "token expired",
        "password must have 8 characters",
        "Mozilla/5.0 (X11; Linux x86_64)",
        "python-httpx/0.28.1",
        "AKIDO",
        "SKILL",
        "re_match",
    ],
)
def test_other_text_is_not_hidden(text: str) -> None:
    assert hidden("OTHER", text) == []
    assert list(in_message(text)) == []


@cases(
    (["--token", MIXED], MIXED),
    (["--password", "correcthorse"], "correcthorse"),
    (["--db-password", MIXED], MIXED),
    (["-p", MIXED], MIXED),
    (["--api-key=" + MIXED], MIXED),
    (["--apiKey", MIXED], MIXED),
    (["-pw", MIXED], MIXED),
    (["token=" + MIXED], MIXED),
    (["--header", f"Authorization: Bearer {MIXED}"], MIXED),
    (["-H", f"Authorization:{MIXED}"], MIXED),
    (["-H", f"X-Api-Key: {MIXED}"], MIXED),
    ([f"Authorization: Bearer {MIXED}"], MIXED),
    (["-u", f"me:{MIXED}"], MIXED),
    (["-e", f"API_KEY={MIXED}"], MIXED),
    (["--env=API_KEY=" + MIXED], MIXED),
    (["--set", f"auth.password={MIXED}"], MIXED),
    (["/password:" + MIXED], MIXED),
    ([f"https://me:{MIXED}@x/"], MIXED),
    (["--url", f"https://x/?token={MIXED}"], MIXED),
    (["sh", "-c", f"server --token {MIXED}"], MIXED),
    (["ghp_" + "a1B2" * 5], "ghp_" + "a1B2" * 5),
    (["--secret", "/abc+def/" + RANDOM], "/abc+def/" + RANDOM),
)
def test_a_secret_in_the_arguments_is_hidden(words: list[str], secret: str) -> None:
    assert secret in [one for _, one in in_arguments(["program", *words, "more"])]


@pytest.mark.parametrize(
    "words",
    [
        ["-p", "8080"],
        ["-p", "8080:80"],
        ["-p", "/srv/data"],
        ["-p", "production"],
        ["--port", "8080"],
        ["--token-file", "/run/token"],
        ["--max-tokens", "4096"],
        ["--auth", "none"],
        ["--auth", "oauth2"],
        ["--key", "/etc/key.pem"],
        ["--verbose", "yes"],
        ["-H", "Accept: application/json"],
        ["-m", "http.server"],
        ["--root", "/srv"],
        ["-y", "@scope/server-name@1.2.3"],
        ["--token", "--next"],
        ["-c", "import sys; print(sys.argv)"],
        ["--session", "interactive"],
        ["--name", MIXED],
    ],
)
def test_other_arguments_are_not_hidden(words: list[str]) -> None:
    assert list(in_arguments(["program", *words])) == []


BASIC = base64.b64encode(b"operator:Tr0ub4dor").decode()


@cases(
    ("Authorization", f"Bearer {MIXED}", MIXED),
    ("authorization", f"Bearer {MIXED}  ", MIXED),
    ("Authorization", MIXED, MIXED),
    ("Authorization", f"Basic {BASIC}", BASIC),
    ("Authorization", f"Basic {BASIC}", "Tr0ub4dor"),
    ("Authorization", f"Basic {BASIC}", "operator"),
    ("Proxy-Authorization", f"basic  {BASIC.rstrip('=')}", "Tr0ub4dor"),
    ("Authorization", f'Digest username="operator", response="{HEX}", uri="/"', HEX),
    ("Authorization", f"AWS4-HMAC-SHA256 Credential=AK/x, Signature={HEX}", HEX),
    ("Cookie", f"a=b; sid={MIXED}", MIXED),
    ("Cookie", f'sid="{MIXED}"', MIXED),
    ("Set-Cookie", f"sid={MIXED}; Path=/; HttpOnly", MIXED),
    ("X-Api-Key", MIXED, MIXED),
    ("X-Auth", MIXED, MIXED),
    ("X-Signature", MIXED, MIXED),
    ("X-Hub-Signature-256", HEX, HEX),
    ("X-Vault-Token", MIXED, MIXED),
    ("apikey", MIXED, MIXED),
    ("Mcp-Auth-Token", MIXED, MIXED),
    ("Mcp-Param-Api-Key", MIXED, MIXED),
    ("X-Amz-Security-Token", MIXED, MIXED),
    ("X-CSRF", MIXED, MIXED),
    ("Location", f"https://x/cb?access_token={MIXED}", MIXED),
    ("User-Agent", f"x {RANDOM}", RANDOM),
    ("WWW-Authenticate", f'Bearer realm="{RANDOM}"', RANDOM),
)
def test_a_secret_in_a_header_is_hidden(name: str, value: str, secret: str) -> None:
    assert secret in list(in_header(name, value))


@cases(
    ("Mcp-Session-Id", RANDOM),
    ("Mcp-Session-Id", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"),
    ("MCP-Protocol-Version", "2025-11-25"),
    ("Mcp-Method", "tools/call"),
    ("Mcp-Name", "get_token"),
    ("Last-Event-ID", RANDOM),
    ("Mcp-Param-Flag", "true"),
    ("Mcp-Param-Plain", "some words"),
    ("Content-Type", "text/event-stream"),
    ("Accept", "application/json, text/event-stream"),
    ("Host", "127.0.0.1:8080"),
    ("Origin", "http://localhost:6274"),
    ("User-Agent", "python-httpx/0.28.1"),
    (
        "WWW-Authenticate",
        'Bearer resource_metadata="https://x/.well-known/oauth-protected-resource"',
    ),
)
def test_a_header_of_the_protocol_is_recorded_as_it_is(name: str, value: str) -> None:
    assert is_recorded(name)
    assert list(in_header(name, value)) == []


@pytest.mark.parametrize(
    "name",
    ["Authorization", "Cookie", "X-Auth", "Mcp-Auth-Token", "Mcp-Anything", "X-Forwarded-For"],
)
def test_another_header_is_recorded_without_its_value(name: str) -> None:
    assert not is_recorded(name)


@cases(
    (f"token={MIXED}", MIXED),
    (f"a=1&%74oken={MIXED}", MIXED),
    (f"a=1;token={MIXED}", MIXED),
    (f"x?token={MIXED}", MIXED),
    (RANDOM, RANDOM),
    (f"apiKey={MIXED}", MIXED),
    ("token=%6B3Fz9qLw2Rt7", MIXED),
    ("token=%6B3Fz9qLw2Rt7", "%6B3Fz9qLw2Rt7"),
)
def test_a_secret_in_a_query_is_hidden(query: str, secret: str) -> None:
    assert secret in list(in_query(query))


@pytest.mark.parametrize("query", ["", "a=b", "cursor=abc123xyz9", "page_token=abc123xyz9", "key="])
def test_other_queries_are_not_hidden(query: str) -> None:
    assert list(in_query(query)) == []


def test_random_parts_of_a_path_are_found() -> None:
    assert list(in_words(f"/mcp/{RANDOM}/events")) == [RANDOM]
    assert list(in_words("/.well-known/oauth-protected-resource/mcp")) == []


@pytest.mark.parametrize(
    "name", ["password", "apiKey", "api_key", "access_token", "client_secret", "dbPassword", "pwd"]
)
def test_a_member_with_a_telling_name_is_hidden_at_any_depth(name: str) -> None:
    inner = json.dumps({"x": [{name: MIXED}]})
    for text in (
        inner,
        json.dumps({"content": [{"text": inner}]}),
        json.dumps({"a": json.dumps({"b": inner})}),
    ):
        assert MIXED in list(in_message(text))


@pytest.mark.parametrize(
    "message",
    [
        {"params": {"_meta": {"progressToken": "abc123xyz9"}, "name": "get_password"}},
        {"result": {"nextCursor": RANDOM, "requestState": "abc123xyz9"}},
        {"params": {"arguments": {"key": "user:1234567", "session": "interactive"}}},
        {"inputSchema": {"properties": {"password": {"type": "string"}}, "required": ["password"]}},
        {"inputSchema": {"properties": {"token": {"type": "string", "title": "A token 12"}}}},
        {"method": "tools/call", "params": {"token": 12345678, "auth": None, "password": "string"}},
        {"token_endpoint": "https://x.example/token", "tokenType": "Bearer-4.1"},
        {"sessionId": RANDOM[:20]},
        {"code": "token = get_token(a1)\nif key == value2: pass", "maxTokens": "100000"},
    ],
)
def test_members_of_the_protocol_are_not_hidden(message: object) -> None:
    assert list(in_message(json.dumps(message))) == []


@cases(
    (f"api_key={MIXED}", MIXED),
    (f"password: {MIXED}", MIXED),
    (f"Authorization: Bearer {MIXED}", MIXED),
    (f'connecting with token="{MIXED}"', MIXED),
    (f"GET /x?token={MIXED} 200", MIXED),
    (f"postgres://a:{MIXED}@db failed", MIXED),
)
def test_a_secret_in_a_line_of_a_log_is_hidden(line: str, secret: str) -> None:
    assert secret in list(in_message(line))


@pytest.mark.parametrize(
    "part",
    [
        *(
            "\\",
            '"',
            "a.",
            "a+",
            "ghp_",
            "ghp_a-",
            "eyJ-",
            "eyJaaaaa.aaaaa.",
            "x:",
            "a://",
            "ab='",
            "&aa=",
        ),
        *(
            "bearer ",
            "token= ",
            '"token":"',
            '\\"ab',
            "https://a",
            "-----BEGIN ",
            "M-",
            "aA-",
            "1",
            "A",
            " ",
        ),
    ],
)
def test_a_hostile_text_takes_time_linear_in_its_length(part: str) -> None:
    """A form that is tried again at each character would take minutes here."""
    text = part * (100_000 // len(part))
    for end in ("", "://", ":", ".webhook.office.com", "/api/webhooks/", "PRIVATE KEY", "eyJ", "="):
        list(in_message(text + end))
    list(in_words(text))
    list(in_header("Authorization", f"Digest {text}"))
