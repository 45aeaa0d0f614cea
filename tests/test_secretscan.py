"""secretscan: every common credential is found to the character, notes without one stay silent.

No whole token stands in this file: tokens are a prefix and seeded characters, FAKE among them, and
`tests/data/secrets.jsonl` keeps its strings as parts to be joined.
"""

import json
import os
import random
import re
import string

import pytest

from mcore.secretscan import KINDS, RULES, Finding, Rule, redact, rule_spans, scan

try:
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_parse as parser

DATA = os.path.join(os.path.dirname(__file__), "data", "secrets.jsonl")
ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits


def fake(length, alphabet=ALNUM, seed=0):
    """`length` seeded characters: a letter first, a digit second, FAKE in the middle where letters allow."""
    dice = random.Random(f"{length}:{alphabet}:{seed}")
    body = [dice.choice(alphabet) for _ in range(length)]
    body[0], body[1] = ("b" if "b" in alphabet else "B"), "4"
    if "K" in alphabet and length >= 10:
        body[length // 2 : length // 2 + 4] = "FAKE"
    while body[-1] in "-_":
        body[-1] = dice.choice(alphabet)
    return "".join(body)


SLASH24 = "/" + fake(24)


def given(label, level=None):
    with open(DATA, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if row["label"] == label and level in (None, row["level"])]
    return [pytest.param(row["kind"], "".join(row["parts"]), id=row["id"]) for row in rows]


def spans(text):
    """What `scan` found, as (kind, characters)."""
    return [(finding.kind, text[finding.start : finding.end]) for finding in scan(text)]


def test_the_given_data_is_there():
    assert len(given("secret", "must")) == 30
    assert len(given("secret", "goal")) == 28
    assert len(given("clean")) == 60


@pytest.mark.parametrize(("kind", "text"), given("secret"))
def test_given_secrets_are_found_once_under_their_kind(kind, text):
    assert [finding.kind for finding in scan(text)] == [kind]


@pytest.mark.parametrize(("kind", "text"), given("clean"))
def test_given_clean_texts_give_nothing(kind, text):
    assert spans(text) == []


# Vendor tokens: (kind, token). Prefix and characters are apart so that no token is in this file.
TOKENS = [
    ("aws-access-key-id", "AK" + "IA" + fake(16, UPPER)),
    ("aws-access-key-id", "AS" + "IA" + fake(16, UPPER)),
    ("github-token", "gh" + "p_" + fake(36)),
    ("github-token", "gh" + "s_" + fake(36)),
    ("github-token", "gh" + "r_" + fake(76)),
    ("github-fine-grained", "github" + "_pat_" + fake(22) + "_" + fake(59)),
    ("gitlab-pat", "gl" + "pat-" + fake(20, URLSAFE)),
    ("gitlab-token", "gl" + "rt-" + fake(20, URLSAFE)),
    ("gitlab-token", "gl" + "dt-" + fake(20, URLSAFE)),
    ("slack-token", "xox" + "b-" + "123456789012-" + "210987654321-" + fake(24)),
    ("slack-token", "xox" + "p-" + "123456789012-" + "210987654321-" + fake(32)),
    ("slack-token", "xa" + "pp-1-A" + fake(10, UPPER) + "-123456789012-" + fake(64, HEX)),
    ("slack-webhook", "hooks.sl" + "ack.com/services/T" + fake(9, UPPER) + "/B" + fake(9, UPPER) + SLASH24),
    ("google-api-key", "AI" + "za" + fake(35, URLSAFE)),
    ("google-oauth", "GOC" + "SPX-" + fake(28, URLSAFE)),
    ("google-oauth", "ya" + "29." + fake(120, URLSAFE)),
    ("anthropic", "sk-" + "ant-" + "api03-" + fake(93, URLSAFE) + "AA"),
    ("openrouter", "sk-" + "or-v1-" + fake(64, HEX)),
    ("openai-key", "sk" + "-" + fake(48)),
    ("openai-key", "sk" + "-proj-" + fake(120, URLSAFE)),
    ("openai-key", "sk" + "-svcacct-" + fake(60, URLSAFE)),
    ("openai-key", "sk" + "-" + fake(32, HEX)),
    ("huggingface", "h" + "f_" + fake(34)),
    ("ai-service-key", "gs" + "k_" + fake(52)),
    ("ai-service-key", "xa" + "i-" + fake(80)),
    ("jwt", "ey" + "JhbGciOiJIUzI1NiJ9" + "." + "ey" + "J" + fake(60, URLSAFE) + "." + fake(43, URLSAFE)),
    ("stripe-live", "sk" + "_live_" + fake(24)),
    ("stripe-live", "rk" + "_live_" + fake(99)),
    ("sendgrid", "S" + "G." + fake(22, URLSAFE) + "." + fake(43, URLSAFE)),
    ("twilio", "S" + "K" + fake(32, HEX)),
    ("mailgun", "ke" + "y-" + fake(32, HEX)),
    ("npm-token", "np" + "m_" + fake(36)),
    ("pypi-token", "py" + "pi-" + "AgEIcHlwaS5vcmc" + fake(120, URLSAFE)),
    ("telegram-bot", "6123456789:" + "AA" + fake(33, URLSAFE)),
    ("discord-bot", "MTk4NjIyNDgzNDcx" + "OTI1MjQ4" + "." + "Cl2FMQ" + "." + fake(38, URLSAFE)),
    ("discord-webhook", "/api/web" + "hooks/123456789012345678/" + fake(68, URLSAFE)),
    ("chat-webhook", "/open-apis/bot" + "/v2/hook/3b7c1f0e-9d2a-4c5b-8e6f-0a1b2c3d4e5f"),
    ("chat-webhook", "oapi.dingtalk.com/robot" + "/send?access_token=" + fake(64, HEX)),
    ("digitalocean", "do" + "p_v1_" + fake(64, HEX)),
    ("shopify", "sh" + "pat_" + fake(32, HEX)),
    ("hashicorp-vault", "hv" + "s." + fake(95, URLSAFE)),
    ("databricks", "da" + "pi" + fake(32, HEX)),
    ("grafana", "gl" + "sa_" + fake(32) + "_" + fake(8, HEX)),
    ("linear", "lin" + "_api_" + fake(40)),
    ("notion", "nt" + "n_" + "12345678901" + fake(35)),
    ("notion", "secr" + "et_" + fake(43)),
    ("postman", "PM" + "AK-" + fake(24, HEX) + "-" + fake(34, HEX)),
    ("age-key", "AGE-SECRET" + "-KEY-1" + fake(58, UPPER)),
    ("alibaba-ak", "LT" + "AI5t" + fake(18)),
    ("tencent-ak", "AK" + "ID" + fake(32)),
    ("azure-client-secret", "aB3" + "8" + "Q~" + fake(34)),
    ("service-token", "dckr" + "_pat_" + fake(27)),
    ("service-token", "fi" + "gd_" + fake(40)),
    ("service-token", "sb" + "p_" + fake(40, HEX)),
    ("service-token", "tsk" + "ey-auth-" + fake(12) + "-" + fake(32)),
]

AROUND = [
    ("部署时用的值是", "，别外传"),
    ("（", "）"),
    ("值：", "。"),
    ("“", "”"),
    ("「", "」"),
    ('"', '"'),
    ("'", "',"),
    ("`", "`"),
    ("**", "**"),
    ("| 名称 | ", " | 备注 |"),
    ("|", "|"),
    ("curl -H 'X-Thing: ", "' https://api.internal/v1"),
    ("export THING=", "\n下一行"),
    ("thing: ", "\r\nnext: 1"),
    ("thing=", ";"),
    ('{"thing":"', '"}'),
    ("line one\\n", "\\nline three"),
    ("https://h.internal/?x=", "&y=2"),
    ("x%3D", "%26"),
    ("<", ">"),
    ("key:", ""),
    ("\u3000", "\u3000"),
    ("（生产）", "；"),
    ("😀", "😀"),
]


@pytest.mark.parametrize(("kind", "token"), TOKENS, ids=[f"{n}-{kind}" for n, (kind, _) in enumerate(TOKENS)])
def test_a_token_is_found_to_the_character_whatever_stands_around_it(kind, token):
    for before, after in AROUND:
        assert spans(before + token + after) == [(kind, token)], (before, after)


@pytest.mark.parametrize(("kind", "token"), TOKENS, ids=[f"{n}-{kind}" for n, (kind, _) in enumerate(TOKENS)])
def test_a_masked_token_is_none(kind, token):
    masked = re.sub("[A-Za-z0-9]{6,}$", lambda run: "x" * len(run[0]), token)
    assert masked != token
    assert spans(f"形如 {masked} 的值") == []


# Shapes of an assignment; `@@` is where the value stands.
PASSWORD_SHAPES = [
    "password = @@", "password: @@", "Password=@@", "PASSWORD : @@", "passwd: @@", "pwd = '@@'",
    "passphrase: @@", '"password": "@@"', "'password': '@@',", '{"user":"bob","password":"@@","port":22}',
    r"{\"password\": \"@@\"}", "DB_PASSWORD=@@", "export DB_PASSWORD=@@", 'export DB_PASSWORD="@@" # prod',
    "DB_PASSWORD='@@'; ./run", '$env:DB_PASSWORD = "@@"', "set DB_PASSWORD=@@",
    "ENV MYSQL_ROOT_PASSWORD=@@", "PGPASSWORD=@@ psql -h db", "smtp_pass = @@", "smtpPass: '@@'",
    "db.pass=@@", "spring.datasource.password=@@", "mysqlPassword: @@", 'password := "@@"',
    "'password' => '@@'", "define('DB_PASSWORD', '@@');", "<password>@@</password>",
    "<db.password>@@</db.password>", 'password: str = "@@"', "connect(host, password='@@')",
    "connect(password=@@)",
    'os.environ["DB_PASSWORD"] = "@@"', "Server=db;Uid=sa;Pwd=@@;Database=app",
    "jdbc:mysql://db/app?user=root&password=@@&useSSL=false",
    "[mysql]\nuser = root\npassword = @@\nport = 3306", "auth:\n  password: @@\n  user: bob",
    "password:\n  @@\n", "the password is @@ for now", "Password for root: @@", "password (prod): @@",
    "password2 = @@", "**Password**: `@@`", "**Password:** @@", "- password: `@@`", "> password: @@",
    "# password: @@", "`password=@@`", "(password: @@)", "[password=@@]", "password: @@, port 22",
    "password: @@.", "password: @@；端口 22", "密码：@@", "密码:@@", "密码: @@", "密码 ： @@", "密码=@@",
    "密码＝@@", "密码：@@，端口 22", "密码:@@。", "密码：@@、账号 root", "密码是@@，别外传", "密码是 @@",
    "パスワード：@@", "パスワードは @@ です", "初期パスワードは「@@」", "パスフレーズ = @@",
    "비밀번호: @@", "비밀번호는 @@ 입니다",
    "密码为@@。", "密码为：@@", "登录密码改成 @@", "已把密码设为@@", "新密码设置为 @@", "密码：**@@**",
    "**密码**：`@@`", "**密码：** @@", "密码：“@@”", "密码：「@@」", '密码："@@"', "密码:'@@'",
    "密码：`@@`", "（密码：@@）", "密码（生产）：@@", "密码(root)：@@", "root 的密码如下：@@",
    "登录 root，密码：@@", "数据库密码为 `@@`", "口令=@@", "跳板机口令：@@", "密碼：@@",
    "初始密码: @@\n首次登录请改", "| 密码 | @@ |", "| **密码** | `@@` |", "|password|@@|",
    "| host | db |\n|---|---|\n| password | @@ |", "| 用户 | 密码 |\n| --- | --- |\n| root | @@ |",
    "|用户|密码|备注|\n|:--|:-:|--:|\n|a|`@@`|b|\n", "密码：@@(生产)", "账号/密码：root/@@",
    "账号／密码: root / @@",
    "账号密码：root @@，仅内网", "user/password: bob/@@", "pass: @@", "密码 `@@` 登录",
    "user | password\n--- | ---\nroot | @@",
    "| 用户 | 密码 |\r\n|---|---|\r\n| root | @@ |\r\n",
    "> | 账号 | 登录密码 |\n> |---|---|\n> | bob | @@ |",
]  # fmt: skip
COMMAND_SHAPES = [
    "mysql -h db -uroot -p@@ app", "mysqldump -u root -p'@@' app > a.sql", "sshpass -p '@@' ssh root@h",
    "sshpass -p @@ scp a b:", "curl -u admin:@@ https://h/", "curl -sS --user 'bob:@@' https://h/",
    "redis-cli -h h -p 6379 -a @@ ping", "docker login -u bob -p @@ hub.internal",
    "tool --user bob --password @@", "CREATE USER 'a'@'%' IDENTIFIED BY '@@';",
    "machine h login bob password @@", "requirepass @@",
]  # fmt: skip
TOKEN_SHAPES = [
    "token: @@", "token = @@", 'token="@@"', "TOKEN=@@", "export API_TOKEN=@@", "access_token=@@",
    "?access_token=@@&a=1", '{"token": "@@"}', "refreshToken: '@@'", "secret = '@@'", "client_secret: @@",
    "clientSecret=@@", "app_secret=@@", "SECRET_KEY = '@@'", "secret_key: @@", "api_key = @@",
    "api-key: @@", "apiKey: \"@@\",", "API Key：@@", "API key: `@@`", "x-api-key: @@", "X-Auth-Token: @@",
    "AccessKeySecret: @@", "access_key=@@", "encryption_key: @@", "//npm.corp/:_authToken=@@",
    "the token is @@", "令牌：@@", "令牌是@@，一周后过期", "密钥：@@", "密钥为 @@。", "API 密钥: @@",
    "访问密钥=@@", "凭证：@@", "凭据: @@", "webhook_secret: @@", "| token | @@ |",
    "| 服务 | API Key |\n|---|---|\n| a | @@ |", "credentials: '@@'", "JWT_SECRET=@@",
]  # fmt: skip
VALUES = [fake(14), fake(12, ALNUM, 1), fake(16, ALNUM, 2), "xFAKEq3!tctJp3", "w7eVj@kFAKEcJ", "VnFAp2#4$iDn"]


@pytest.mark.parametrize("shape", PASSWORD_SHAPES)
def test_an_assigned_password_is_found_to_the_character(shape):
    for value in [*VALUES, "hunter2Trombone99"]:
        assert spans(shape.replace("@@", value)) == [("password-assignment", value)], value


@pytest.mark.parametrize("shape", TOKEN_SHAPES)
def test_an_assigned_token_is_found_to_the_character(shape):
    for value in [*VALUES[:3], fake(40, HEX), fake(32, URLSAFE)]:
        assert spans(shape.replace("@@", value)) == [("password-assignment", value)], value


@pytest.mark.parametrize("shape", COMMAND_SHAPES)
def test_a_password_given_to_a_command_is_found_to_the_character(shape):
    for value in VALUES[:3]:
        assert spans(shape.replace("@@", value)) == [("command-password", value)], value


# Lines whose kind is told by what stands around: (kind, before, credential, after).
LINES = [
    ("aws-secret-key", "aws_secret_access_key = ", fake(40), "\nregion = cn-north-1"),
    ("aws-secret-key", "export AWS_SECRET_ACCESS_KEY='", fake(40), "'"),
    ("aws-secret-key", '"SecretAccessKey": "', fake(40, ALNUM, 1), '",'),
    ("aws-secret-key", "AWS Secret Access Key：", fake(40, ALNUM, 2), "，勿外传"),
    ("azure-storage", "AccountName=x;Account" + "Key=", fake(86) + "==", ";EndpointSuffix=core"),
    ("azure-storage", "Endpoint=sb://x/;SharedAccess" + "Key=", fake(43) + "=", ""),
    ("url-password", "postgres://admin:", fake(14), "@db.internal:5432/app"),
    ("url-password", "数据库mysql://root:", "b4!FAKExyz", "@10.0.0.3/mall，测试"),
    ("url-password", "redis://:", fake(12), "@127.0.0.1:6379/0"),
    ("url-password", "代理 http://bob:", fake(10), "@proxy.internal:8080。"),
    ("url-password", "mongodb+srv://app:", "p%40FAKE9x", "@c0.internal/?retryWrites=true"),
    ("url-password", "mysql://root:", "98765432", "@10.0.0.3/mall"),
    ("connection-string", "dsn := \"root:", fake(12), "@tcp(127.0.0.1:3306)/app\""),
    ("basic-header", "Authorization: Ba" + "sic ", "Ym9iOmI0RkFLRXh5eg==", ""),
    ("basic-header", "-H 'authorization: ba" + "sic ", "Ym9iOmI0RkFLRXh5eg==", "'"),
    ("bearer-header", "Authorization: Bea" + "rer ", fake(40), "，一周有效"),
    ("bearer-header", '"Authorization": "Bea' + 'rer ', fake(32, URLSAFE), '"'),
    ("bearer-header", "-H 'Authorization: token ", fake(40, HEX), "'"),
    ("password-assignment", "AK: LTAI 见控制台，secret：", fake(30), "。"),
    ("password-assignment", "APP_KEY=", "base64:" + fake(43) + "=", "\nAPP_ENV=local"),
    ("password-assignment", "admin 的密码：", "admin123", ""),
    ("password-assignment", "password = ", "hunter2", ""),
    ("password-assignment", "client_secret: ", "550e8400-e29b-41d4-a716-446655440000", ""),
    ("password-assignment", "url: https://db.example.com\npassword: ", "hunter2xAb9", ""),
    ("password-assignment", "见 https://db.example.com\ntoken: ", fake(16), ""),
    ("password-assignment", "it is Auth::Login\npassword=", "hunter2xAb9", ""),
]


@pytest.mark.parametrize(("kind", "before", "secret", "after"), LINES)
def test_a_credential_known_by_its_line_is_found_to_the_character(kind, before, secret, after):
    assert spans(before + secret + after) == [(kind, secret)]


def block(name, body, dashes="-----"):
    return f"{dashes}BEGIN {name}{dashes}\n{body}\n{dashes}END {name}{dashes}"


BODY = "\n".join(fake(64, ALNUM + "+/", seed) for seed in range(5))


@pytest.mark.parametrize(
    "name",
    ["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]
    + ["ENCRYPTED PRIVATE KEY", "DSA PRIVATE KEY"],
)
def test_a_private_key_is_one_finding_from_its_first_dash_to_its_last(name):
    whole = block(name, BODY)
    for key in (whole, whole.replace("\n", "\\n"), block(name, "Proc-Type: 4\n\n" + BODY)):
        assert spans(f"私钥：{key}，勿外传") == [("private-key", key)]


def test_a_private_key_without_its_end_takes_in_the_lines_that_follow():
    key = block("RSA PRIVATE KEY", BODY).rpartition("\n")[0]
    assert spans(key + "\n\n以上") == [("private-key", key)]
    header = "-----BEGIN " + "RSA PRIVATE KEY-----"
    assert spans(f"只有头 {header} 没有正文") == [("private-key", header)]
    assert spans("PuTTY-User-Key-" + "File-3: ssh-ed25519\nEncryption: none")[0][0] == "private-key"


def test_the_more_specific_kind_names_what_several_rules_find():
    github, jwt = dict(TOKENS)["github-token"], dict(TOKENS)["jwt"]
    anthropic, openai = dict(TOKENS)["anthropic"], dict(TOKENS)["openai-key"]
    assert spans(f"password = {github}") == [("github-token", github)]
    assert spans(f"https://x-access-token:{github}@github.com/a/b") == [("github-token", github)]
    assert spans(f"Authorization: Bearer {jwt}") == [("jwt", jwt)]
    assert spans(f"ANTHROPIC_API_KEY={anthropic}") == [("anthropic", anthropic)]
    assert spans(f'OPENAI_API_KEY="{openai}"') == [("openai-key", openai)]


def test_findings_are_sorted_apart_and_carry_no_text():
    tokens = [token for _, token in TOKENS]
    lines = [f"İ😀密码：b4FAKE7x{number:02}，{token}" for number, token in enumerate(tokens)]
    text = "\n".join(lines)
    found = scan(text)
    assert Finding._fields == ("kind", "start", "end")
    assert len(found) == 2 * len(tokens)
    assert all(one.end <= two.start for one, two in zip(found, found[1:], strict=False))
    assert [text[one.start : one.end] for one in found][1::2] == tokens


def test_every_kind_is_found_by_a_text_of_this_file():
    texts = ["".join(line[1:]) for line in LINES] + [token for _, token in TOKENS]
    texts += [block("PRIVATE KEY", BODY), COMMAND_SHAPES[0].replace("@@", VALUES[0])]
    assert {finding.kind for text in texts for finding in scan(text)} == set(KINDS)


def test_redacted_text_holds_no_credential_and_suits_a_file_name():
    texts = [case.values[1] for case in given("secret")]
    texts += [f"标题 {token}，待轮换" for _, token in TOKENS]
    texts += [shape.replace("@@", VALUES[0]) for shape in PASSWORD_SHAPES + TOKEN_SHAPES + COMMAND_SHAPES]
    texts += ["".join(line[1:]) for line in LINES]
    for text in texts:
        clean = redact(text)
        assert "redacted-" in clean and scan(clean) == [] and redact(clean) == clean, text
        assert not any(secret in clean for _, secret in spans(text)), text
    assert all(re.fullmatch("[a-z-]+", kind) for kind in KINDS)


def test_redact_leaves_the_rest_as_it_is():
    token = dict(TOKENS)["github-token"]
    assert redact(f"令牌{token}，勿外传") == "令牌redacted-github-token，勿外传"
    assert redact("没有凭据的标题 id_ed25519") == "没有凭据的标题 id_ed25519"
    assert redact("") == ""


def test_any_text_gives_findings_inside_it_that_redact_replaces():
    dice = random.Random(5)
    pieces = [keyword for rule in RULES for keyword in rule.keywords] + VALUES
    pieces += [token for _, token in TOKENS]
    pieces += list(" =:：|,\n\"'`()<>/\\@&%$-_.!，。是为\ud800\0\u200b\u0130😀")
    pieces += ["://", "**", "\n|-|\n", "/密码："]
    for _ in range(1500):
        text = "".join(dice.choice(pieces) for _ in range(dice.randrange(1, 14)))
        found = scan(text)
        assert all(0 <= one.start < one.end <= len(text) for one in found), text
        assert all(one.end <= two.start for one, two in zip(found, found[1:], strict=False)), text
        replaced = text
        for kind, start, end in reversed(found):
            replaced = replaced[:start] + "redacted-" + kind + replaced[end:]
        assert redact(text) == replaced, text


CLEAN = [
    # references
    "key is in ~/.ssh/id_ed25519", "token: see above", "token：见上", "密码：见 1Password 条目 deploy2",
    "密钥: 存在 Bitwarden 里，名字 prod-2024", "私钥：~/.ssh/id_rsa_2024", "私钥是 id_ed25519，公钥已上传",
    "密码：问 bob（分机 8021）", "password: see wiki page 12", "password: stored in vault item db-prod-2",
    "口令：同 GitLab2 一样", "密码已改成用密钥登录，端口 2222", "凭证: 见 JIRA-1234",
    "secret: op://Prod/db-1/password", "password: vault:secret/data/app1#db",
    "PASSWORD_FILE=/run/secrets/db1", "password: !vault |",
    "secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db1-AbC12d",
    "password: ENC[AES256_GCM,data:Tr7o1yQ9,iv:1vZ2w==,type:str]",
    "secretKeyRef: {name: app-secret-2, key: token1}", "secretName: tls-cert-2024",
    "token: /var/run/secrets/kubernetes.io/serviceaccount/token1", r"密钥: C:\keys\prod2\id_rsa",
    "api key 在 config/prod2/app.yaml", "密钥文件：deploy2.pem", "token = token2.json",
    "密码: 发到 ops2@corp.example 邮箱了",
    # placeholders
    "password=xxx123", "password: your_password_1", "token: <token-1>", "TOKEN=YOUR_TOKEN_2",
    "api_key: sk-xxxxxxxxxxxxxxxxxxxxxxxx", "secret: REPLACE_ME_1", "密码：changeme123",
    "password = example123", "password: placeholder1", "PASSWORD=${DB_PASSWORD2:-none}",
    "password: %DB_PASS1%", "token: $GITHUB_TOKEN2", "token: ${{ secrets.NPM_TOKEN2 }}",
    "password={{ db1.password }}", "password: [REDACTED-1]", "密码：<填 8 位>", "password = '********1'",
    "api_key=demo-key-1", "secret: my-secret-token-123", "export GITHUB_TOKEN=gh" + "p_your_token_here1",
    "AKIA" + "IOSFODNN7EXAMPLE", "AKIA" + "XXXXXXXXXXXXXXXX", "sk-" + "your-api-key-goes-here-0001",
    "postgres://user:password@host/db", "postgres://user:${PGPASS1}@host/db", "mysql://root:<pass1>@host",
    "redis://:****@h:6379", "https://user:your_pass1@h", "Authorization: Bearer $TOKEN1",
    "Authorization: Bearer <access_token_1>", "Authorization: Basic <base64-1>",
    "curl -u admin:$PASS1 https://h/", "mysql -uroot -p app1", "sshpass -p $PW1 ssh h",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    # prose
    "パスワードは8文字以上にする", "パスワード: 1Password に保存", "비밀번호는 8자 이상이어야 한다",
    "비밀번호 변경 2024-01-05",
    "密码为 8 位以上，含数字。", "密码是 SHA256 加盐后存的", "口令: base64 编码后传输",
    "密码：bcrypt12 轮哈希", "密钥为 RSA2048", "密钥是 ed25519 类型", "密钥: AES-256-GCM",
    "token 为 JWT(HS256)", "令牌是 OAuth2 的", "token: 128k", "max_token: 4096tokens", "Token：v2.1.0",
    "secret: v1beta1", "密码 2024-06-01 过期", "password: 2024-06-01 rotated", "password expires in 90days",
    "The password is base64-encoded2", "token is valid for 3600seconds", "the secret is that utf8 works",
    "凭证号 2024-00123", "bypass = abc123def", "passport: E12345678", "compass: n0rth1",
    "PASS: tests/test_auth2.py", "tokens: 12a34", "keyboard: ab12cd34ef", "monkey: a1b2c3d4e5",
    "primary_key: user_id2", "cache key: user:42:profile2", "basic operations 2024",
    "risk-assessment-of-task-list-2024-q3-final",
    "the bearer of this letter arrived in 1999 with abcdefgh12345678", "Basic Operations for Tables",
    # code
    "password = getpass.getpass('pw1: ')", "token = tokens[0]", "token = secrets.token_hex(32)",
    "password = request.form['password2']", "secret = hashlib.sha256(b'x1').hexdigest()",
    "api_key = config.api_key2", "password: str = Field(min_length=8)", "password VARCHAR(255) NOT NULL",
    "password: varchar255", "const token = await fetchToken2(user)", "token = `${prefix1}-x`",
    "self.password = password1", "token != token2abc", "if (token === 'a1')", "secret::Key2",
    "md5(password) = 5f4dcc3b5aa765d61d8327deb882cf99", "ssh -p b4FAKE7x h", "tool -a b4FAKE7x",
    "token: cl100k_base", "secret: regcred-7f9c4b",
    "(cache key) = ab12cd34ef", "https://h/x-next_token=CAUQAA12xYz",
    "pad_token = '<|pad1|>'", "pageToken: 'CAUQAA12xYz'", "csrf_token = a1b2c3d4e5f6",
    "access_token_url: https2", "password_hash = $2b$12$KIXQzq1y", "docker run -v $PWD:/data1 img",
    "export OLDPWD=/home/bob1", "sk-" + "button sk-" + "folding-cube1",
    "AWS::IAM::AccessKey: 62d91b1730c0a1c8", "xox" + "b-token 的格式", "hf_" + "hub_download('a/b1')",
    "npm_" + "package_version_1_2_3",
    # hashes, ids, addresses
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "image@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "docker://alpine:3.18@sha256:9f86d081884c7d659a2feaa0c55ad015",
    "ssh key: SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8",
    "trace id 4bf92f3577b34da6a3ce929d0e0e4736", "token: 0xdAC17F958D2ee523a2206206994597C13D831ec7",
    "https://h:8443/a?b=1@2", "http://localhost:8080/user:1@x", "git@github.com:org/repo2.git",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 bob@h", "pk_live_" + "51H8xFAKEabcdefgh1234567",
    "https://h/reset?step=2&id=3f2504e04f8941d39a0c0305e82c3301", "12:AAPL:2024 report",
    "| 字段 | 类型 |\n|---|---|\n| password | varchar(64) |\n| token | string32 |",
    "| 密码 | 说明 |\n|---|---|\n| pwd_v1 | 旧版 |",
    "package com.example.MyVeryLongNamespaceName.Models.SomeExtremelyLongClassNameForThing",
]  # fmt: skip


@pytest.mark.parametrize("text", CLEAN)
def test_a_note_without_a_credential_gives_nothing(text):
    assert spans(text) == []


def test_every_pattern_is_bounded_and_asks_for_ascii_ends():
    for rule in RULES:
        assert parser.parse(rule.pattern).getwidth()[1] < 12_000, rule.kind
        assert not re.search(r"\\[bBwW]", rule.pattern), rule.kind
        assert all(keyword == keyword.lower() for keyword in rule.keywords), rule.kind


LONG = 200_000


def test_a_text_of_keywords_inside_each_others_values_is_judged_a_few_times_over_only():
    def judged(text):
        read = []
        slow = Rule("slow", ("pwd",), "pwd:[a-z:]{1,200}", lambda match: read.append(len(match[0])))
        assert list(rule_spans(slow, text, text)) == []
        return sum(read)

    assert judged("pwd:" * 500) > 30 * 2000  # each of them is tried in a text of common length
    assert judged("pwd:" * 100_000) < 6 * 400_000


def repeated(unit, size=LONG):
    return (unit * (size // len(unit) + 1))[:size]


@pytest.mark.parametrize("rule", RULES, ids=[f"{n}-{rule.kind}" for n, rule in enumerate(RULES)])
def test_a_rule_comes_to_an_end_on_its_own_prefix_again_and_again(rule):
    for keyword in rule.keywords[:2]:
        for unit in (keyword, f"{keyword.upper()}a1", f'{keyword}="' + "b4-" * 60 + "!"):
            text = repeated(unit)
            for start, end in rule_spans(rule, text, text.lower()):
                assert 0 <= start < end <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        repeated("-----BEGIN " + "PRIVATE KEY-----\n"),
        "password" + " " * LONG + "x",
        repeated("password="),
        repeated("eyJ."),
        repeated("password: b4" + "-" * 150 + "!"),
        repeated("密码是b4" + "1." * 40 + "!"),
        repeated("password:b4" + "_a" * 90 + "!"),
        repeated("|密码|\n|-|\n"),
        repeated("|密码" * 300 + "|\n" + "|-" * 300 + "|\n" + "|b4cdef" * 300 + "|\n"),
        "A" * 1_000_000,
        "密" * 1_000_000,
        "a1" * 500_000 + "password=",
    ],
    ids=range(12),
)
def test_scanning_comes_to_an_end_on_texts_made_to_be_slow(text):
    assert all(finding.end <= len(text) for finding in scan(text))
