"""Kind and span of every credential in a text, never its characters.

A reminder, not a security boundary: it would rather miss a credential than cry wolf, so a reference
("key is in ~/.ssh/id_ed25519"), a placeholder or a variable is no finding. Knows text only: no card,
no disk, no clock.

How it stays linear in the text: every rule is tried only where one of its keywords stands
(`str.find`), its pattern starts at that keyword, and every repeat in it has an upper bound. Where
letters end is asked in ASCII, never with a word boundary: to Python a Han character is a word
character, so a word boundary would miss a token written right after one.
"""

import re
from functools import cache

from mcore.record import namedtuple

Finding = namedtuple("Finding", "kind start end")
Finding.__doc__ = """One credential: its kind (one of `KINDS`) and its character span [start, end)."""

Rule = namedtuple("Rule", "kind keywords pattern check")
Rule.__doc__ = """How one kind is found.

`keywords` are lower case and tell where to try; `pattern` must match from there. `check(match)` gives
the span of the credential, or None when it is a placeholder or a reference.
"""


OVERLAP = 4  # in 158 MB of notes, documentation and code no text came to 0.8


def scan(text):
    """Findings in `text`, sorted by start, none overlapping another.

    Where rules overlap the spans become one and the kind listed first in `RULES` names it.
    """
    # U+0130 alone grows when lowered; without it the offsets of both texts are the same.
    lowered = text.replace("\u0130", "i").lower()
    found = []
    for rank, rule in enumerate(RULES):
        found += [(start, end, rank) for start, end in rule_spans(rule, text, lowered)]
    found += [(start, end, len(RULES) - 1) for start, end in table_spans(text)]
    return _merged(found)


def redact(text):
    """`text` with `redacted-<kind>` in place of each finding; harmless in a file name."""
    pieces, at = [], 0
    for finding in scan(text):
        pieces += [text[at : finding.start], "redacted-", finding.kind]
        at = finding.end
    return "".join([*pieces, text[at:]])


def rule_spans(rule, text, lowered):
    """Spans one rule finds in `text`; `lowered` is the same text in lower case, offset for offset.

    A keyword inside a value that was none is tried too, until such values have been judged `OVERLAP` times the text
    over: only a text made to be slow comes there, and from then on the next keyword is one behind the value.
    """
    patience = OVERLAP * len(text) + 100_000
    for keyword in rule.keywords:
        at = lowered.find(keyword)
        match_at = _compiled(rule.pattern).match if at >= 0 else None
        while at >= 0:
            match, span, behind = match_at(text, at), None, at + 1
            if match:
                span = rule.check(match)
                if span:
                    yield span
                    behind = max(span[1], behind)
                else:
                    patience -= match.end() - at
                    if patience < 0:
                        behind = match.end()
            at = lowered.find(keyword, behind)


def _merged(found):
    """Findings from (start, end, rank) triples, overlapping ones joined under the lowest rank."""
    joined = []
    for start, end, rank in sorted(found):
        if joined and start < joined[-1][1]:
            last = joined[-1]
            joined[-1] = (last[0], max(end, last[1]), min(rank, last[2]))
        else:
            joined.append((start, end, rank))
    return [Finding(RULES[rank].kind, start, end) for start, end, rank in joined]


@cache
def _compiled(pattern):
    """A compiled pattern, made at first need: most cards need a few, and all cost 40 ms."""
    return re.compile(pattern)


# A token may begin after anything but an ASCII letter or digit, after an escaped line end, after %3D.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_END = r"(?![A-Za-z0-9])"
# For patterns with a long body of token characters: a run of them is read once, not at every keyword in it.
_RUN = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"

# -- Is it real? Questions to a token or a value of at most a few hundred characters.

_MASKED = r"[xX]{6}|[*.]{3}|0{8}|(?i:example|placeholder|redacted|change_?me|your[-_])"
# The next three are asked of the value in lower case: that costs half of what ignoring case does.
_PLACEHOLDER = (
    r"xxx|\*\*\*|\.\.\.|____|example|sample|placeholder|redacted|replace|insert|dummy|foo_?bar|change[-_]?(?:me|it)"
    r"|your|1234567890|0123456789|passw(?:or)?d|secret|token|api[-_]?key|credential|user_?name"
    r"|\$[{(]|\{\{|\}\}|://|%\("
)
_NO_SECRET = "|".join(
    (
        # a name for a placeholder: mykey1, db_pass2
        r"(?:(?:my|the|some|new|old|db|root|test|user)[-_]?)?(?:pass|key|pwd)[-_]?\d*$",
        # templates, paths, colours, a public 0x address
        r"[~<{\[(]|\^[\[(]|/[a-z][\w.-]*/|\.{1,2}/|[a-z]:[\\/]|%[a-z_]\w*%|@[a-z]+[.:/(]|#[0-9a-f]{3,8}$",
        r"arn:aws|0x[0-9a-f]{40}$",
        # what is stored hashed or encrypted already
        r"\$(?:2[abxy]|argon2|[156y]|pbkdf2)|(?:sha|md|bcrypt|scrypt|argon|pbkdf)\w*[:$-]",
        # algorithms, types, products, steps, versions
        r"(?:sha|md|aes|rsa|ecdsa|ecdh|ed|base|utf|bcrypt|pbkdf|argon|oauth|hmac|chacha|curve|secp|blake|crc|totp"
        r"|wpa|ipv|tls|varchar|u?int|float|string|bytes|char|win|windows|ubuntu|python|mysql|redis|php|java|node)"
        r"-?\d{1,5}(?![0-9:]|[a-z0-9]{8})",
        r"(?:[hrep]s|x|sm|des|ssl|ssh|log|http|web|vue|level|step|part|test|case|type|line|row)\d{1,4}$",
        r"v\d+(?:(?:alpha|beta|rc)\d*)?$|v?\d+(?:\.\d+)+(?:[-+_a-z][\w.+-]*)?$",
        # dates and quantities
        r"\d{4}-\d\d(?:-\d\d|$)|[\d.,_]+(?:secs?|seconds?|mins?|minutes?|hours?|days?|weeks?|months?|years?)$",
        r"[\d.,_]+(?:[smhdwkbx]|ms|px|[kmgt]i?b|tokens?|chars?|bytes?|bits?|words?|digits?)$",
    )
)
_MAIL_END = r"@[\w-]+(?:\.[\w-]+)+$"
_FILE_END = (
    r"\.(?:pem|key|pub|crt|cer|csr|p12|pfx|jks|kdbx?|gpg|asc|enc|env|txt|md|json|ya?ml|toml|ini|cfg|conf|log|csv"
    r"|xml|html?|zip|t?gz|db|sqlite3?|py|jsx?|tsx?|sh|go|rs|java|php|rb|png|jpe?g|pdf)$"
)
_WORD = r"(?:[A-Z]?[a-z]+(?:[A-Z][a-z]+)*|[A-Z]+)?\d{0,6}"
_NAME = (
    # words with digits only at their ends, joined by separators: tls-cert-2024, user.data2, db/prod1
    rf"(?:{_WORD}[-_./:])+{_WORD}$"
    # a variable: $GITHUB_TOKEN2, $dbPass2->value
    r"|\$(?:[A-Z_][A-Z0-9_]*|[a-z_][a-z0-9_]*(?:[A-Z][a-z0-9]+)*)(?:[-:.\[].*)?$"
)
# Two places where the class of character changes; a capital that begins a word is no change.
_CHANGE = r"(?:[a-z](?=[^a-z])|[0-9](?=[^0-9])|[A-Z](?=[^A-Za-z]|[A-Z][a-z])|[^A-Za-z0-9](?=[A-Za-z0-9]))"
_CHANGES = rf"{_CHANGE}.*{_CHANGE}"
# Lower-case parts of fewer than 8 mixed characters, the name of a thing: cl100k_base, regcred-7f9c4b.
_SHORT_PARTS = r"(?!.*[A-Z])(?=.*[-_./:])(?!(?:.*[-_./:])?(?=[a-z]*[0-9])(?=[0-9]*[a-z])[^-_./:]{8})"


def _varied(match):
    """The span of a vendor token, unless it is a mask such as ghp_xxxx or a documented example."""
    group = match.lastindex or 0
    token = match[group]
    masked = len(set(token[-12:])) < 3 or _compiled(_MASKED).search(token)
    return None if masked else match.span(group)


def _mixed_token(match):
    """As `_varied`, for tokens that hold letters and digits after their prefix."""
    return _varied(match) if _mixed(match[match.lastindex or 0][4:]) else None


def _mixed(value):
    """Whether `value` holds ASCII letters and digits."""
    return _value_tests()[0](value) is not None


@cache
def _value_tests():
    """The questions to a value, bound once: a megabyte may hold 100,000 assignments."""
    return (
        re.compile("(?s)(?=[^0-9]*[0-9])[^A-Za-z]*[A-Za-z]").match,
        re.compile(_PLACEHOLDER).search,
        re.compile(_NO_SECRET).match,
        re.compile(_NAME).match,
        re.compile(f"{_FILE_END}|{_MAIL_END}").search,
    )


@cache
def _random_tests():
    return re.compile(_CHANGES).search, re.compile(_SHORT_PARTS).match


def _looks_secret(value):
    """Whether an assigned value is neither a placeholder, a reference, a number nor plain words."""
    mixed, placeholder, no_secret, name, file_or_mail = _value_tests()
    if not mixed(value):
        return False
    lowered = value.lower()
    if placeholder(lowered) or no_secret(lowered) or name(value):
        return False
    return not ("." in value and file_or_mail(lowered))


def _looks_random(value):
    """The harder test, for keys and sentences that often stand before harmless words.

    `newPassword2` changes its class of character 2 times, `hunter2Trombone99` 3 times, random
    characters about once for every two.
    """
    if len(value) < 8 or not _mixed(value):
        return False
    changes, short_parts = _random_tests()
    return bool(changes(value)) and not short_parts(value) and _looks_secret(value)


# -- Assignments: `password = value` in the shapes of code, configuration, Markdown and prose.

_SPACE = r"[ \t\u00a0\u3000]"
_CLOSE = r"[\\\"'`*_\])\u300d\u300f\u300b\u201d\u2019]{0,6}"
_VALUE = (
    r"(?:[bru]{1,2}(?=[\"']))?"
    r"(?:\\?\"(?P<double>[!#-\[\]-~]{6,200})\\?\"|'(?P<single>[!-&(-~]{6,200})'|`(?P<tick>[!-_a-~]{6,200})`"
    r"|[\u201c\u2018\u300c\u300e\u3010]?(?P<bare>[!#-&(-+\--:?-\[\]-_a-{}~]{6,200}={0,2}))"
)
# `pass` only where a word begins: not in bypass, but in DB_PASS and dbPass.
_PASSWORD = (
    r"pass(?:word|wd|phrase|code)s?|pwd|密[码碼]|口令|パスワード|パスフレーズ|비밀번호"
    r"|(?<![A-Za-z])pass|(?-i:(?<=[a-z])Pass)"
)
_SECRET = r"secret|token|credentials?|key|_auth|[密秘金私][钥鑰匙]|令牌|[凭憑][证據据證]|权杖"
_CALL = r"[A-Za-z_][\w.:]*[(\[]"
_ASSIGNMENT = (
    rf"(?ai)(?P<pair>(?<=[/／号號]))?(?:(?P<password>{_PASSWORD})|{_SECRET})[0-9]{{0,2}}(?P<close>{_CLOSE})"
    rf"(?:(?:{_SPACE}?[（(][^()（）\n]{{0,24}}[)）]| for [!-~]{{1,30}}|如下){_CLOSE})?{_SPACE}{{0,8}}"
    rf"(?:(?P<sep>(?::{_SPACE}{{0,3}}(?:str|&str|string|bytes){_SPACE}{{0,3}})?(?::?=(?![=~>])|=>|[:：＝](?!:))|[|,>])"
    r"|(?P<said>(?:[设設改换換]|[设設]置|修改|重置|更新|更改)?[为為成是][:：]?|は、?|[은는]|(?<= )is |(?=`)))"
    rf"(?:\*\*|__)?{_SPACE}{{0,8}}(?P<line>\r?\n[ \t>]{{0,8}})?(?:\*{{1,3}}|__)?"
    # "账号/密码：root / value" names the account first.
    rf"(?(pair)(?:[!-.0-9:-~]{{1,40}}(?:{_SPACE}?[/／、，]{_SPACE}?|{_SPACE}))?){_VALUE}"
)
_KEY_OF = (
    "api", "access", "secret", "private", "app", "auth", "encrypt", "encryption", "sign", "signing",
    "account", "master", "shared", "consumer",
)  # fmt: skip
# Page marks, idempotency keys and marks of a vocabulary.
_TOKEN_OF_NOTHING = (
    "next", "page", "paging", "forward", "backward", "continuation", "cursor", "sync", "client", "request",
    "lock", "change", "update", "idempotency", "csrf", "xsrf", "pad", "eos", "bos", "unk", "mask", "stop",
)  # fmt: skip


def _assigned(match):
    """The span of an assigned value that looks secret, else None."""
    password, sep, said, line = match.group("password", "sep", "said", "line")
    if _is_other_key(match, password, sep) or (sep in (",", ">") and _is_other_sign(match, sep)):
        return None
    if line and match.string[match.end() : match.end() + 40].split("\n")[0].strip():
        return None  # a value on the next line stands there alone
    doubtful = not password or said is not None or line or (sep == ":" and len(password) == 4)
    return _value_span(match, _looks_random if doubtful else _looks_secret)


def _is_other_key(match, password, sep):
    """Whether what stands around makes it another name: cache key, next_token, AWS::IAM::AccessKey."""
    start = match.start()
    before = match.string[start - 34 if start > 34 else 0 : start]
    colon = before.rfind(":")
    if colon >= 0:
        # https://x-access-token:...@host is for the rule of addresses
        double = r"(?<=:):[A-Za-z0-9]{0,12}\Z"
        other = rf"(?:{double}|://[A-Za-z0-9._~-]{{0,30}}\Z)" if sep == ":" else double
        if _compiled(other).match(before, colon):
            return True
    if before[-1:] == "(" and match["close"][:1] == ")" and _compiled(r"[A-Za-z0-9_]\($").search(before):
        return True  # md5(password)=...
    if password:
        return False
    name = match[0][:3].lower()
    word = (before[:-1] if before[-1:] in ("_", "-", " ") else before).lower()
    if name == "key":
        return not word.endswith(_KEY_OF)
    if name == "tok":
        return word.endswith(_TOKEN_OF_NOTHING)
    return name == "sec" and before[-1:] == sep == ":"  # arn:aws:secretsmanager:...:secret:name


def _is_other_sign(match, sep):
    """Whether `,` or `>` after the key assigns nothing: define("KEY", "value") and <key>value</key> do."""
    if sep == ">":
        return match.string[match.end() : match.end() + 2] != "</"
    before = match.string[max(0, match.start() - 40) : match.start()]
    quoted = match["close"] and match.lastgroup != "bare"
    return not (quoted and _compiled(r"\([ \t]?[\"'][\w.-]*$").search(before))


def _value_span(match, looks):
    """The span of the value group of `_VALUE` when `looks(value)`, else None."""
    form = match.lastgroup
    value = match[form]
    if form == "bare":
        value = _bare_value(value, match.string[match.end() : match.end() + 1])
    if len(value) < 6 or not looks(value):
        return None
    # Only code without quotes calls something there.
    if ("(" in value or "[" in value) and form in ("bare", "tick") and _compiled(_CALL).match(value):
        return None
    start = match.start(form)
    return start, start + len(value)


def _bare_value(value, following):
    """An unquoted value without the next query parameter and the punctuation after it.

    `following` is the character after it: a bracket before Chinese opens a remark, b4FAKE7x(生产).
    """
    if value[-1] in "([" and not following.isascii():
        value = value[:-1]
    if "&" in value or "%" in value:
        value = _compiled(r"&[A-Za-z_.-]{1,40}=+$|%(?:2[0267]|0[AD]).*").sub("", value)
    value = value.rstrip(".,:?)]}")
    return value[:-2].rstrip(".,:?)]}") if value.endswith(("**", "__")) else value


_RULER = r"(?m)^[ \t>]{0,8}\|?(?:[ \t]{0,8}:?-{1,200}:?[ \t]{0,8}\|){1,40}[ \t:-]{0,200}\r?$"
_KEY_CELL = (
    rf"(?i)(?:.*[^a-z])?(?:(?P<password>{_PASSWORD})"
    r"|(?:api|access|secret)[ _-]?key|secret|token|密[钥鑰]|令牌)[*`_ ]*$"
)


def table_spans(text):
    """Spans of values below a header cell such as `密码` in Markdown tables."""
    at = 0
    for ruler in _compiled(_RULER).finditer(text) if "|" in text else ():
        if ruler.start() < at:  # inside the rows of the table before
            continue
        header = text[text.rfind("\n", 0, max(0, ruler.start() - 1)) + 1 : ruler.start()]
        columns = _key_columns(header[:2000].split("|"))
        at = ruler.end() + 1
        while columns and at < len(text):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            cells = text[at:end].split("|")
            if len(cells) < 2:
                break
            for column, cell in enumerate(cells):
                span = column in columns and _cell_span(cell, at, columns[column])
                if span:
                    yield span
                at += len(cell) + 1


def _key_columns(cells):
    """Number of each header cell that names a credential -> the test its values must pass."""
    columns = {}
    for number, cell in enumerate(cells):
        name = _compiled(_KEY_CELL).match(cell.strip()[:60])
        if name:
            columns[number] = _looks_secret if name["password"] else _looks_random
    return columns


def _cell_span(cell, start, looks):
    """The span of a cell's content without Markdown marks when `looks(content)`, else None.

    `start` is the offset of the cell in the text.
    """
    content = cell[:400].strip(" \t\r*`\"'")
    if not 6 <= len(content) <= 200 or not _compiled("[!-~]*$").match(content) or not looks(content):
        return None
    start += cell.index(content)
    return start, start + len(content)


# -- Checks of single kinds.


def _private_key(match):
    """The whole key block; the header alone when nothing follows; None when the body is an ellipsis."""
    text, body = match.string, match.end()
    fence = text.find("-----", body, body + 32_000)
    if fence >= 0 and text.startswith("-----END", fence):
        if not _compiled("[A-Za-z0-9+/=]{24}").search(text[body:fence]):
            return None
        closing = text.find("-----", fence + 8, fence + 80)
        return match.start(), closing + 5 if closing >= 0 else fence + 8
    lines = r"(?:[ \t\r>]{0,8}(?:\n|\\n)[ \t>]{0,8}[A-Za-z0-9+/=:-]{24,100}){0,200}"
    return match.start(), _compiled(lines).match(text, body).end()


def _after(before, least, most):
    """A check whose span takes in what stands right before the keyword.

    That is `least` to `most` characters which match the pattern `before` from end to end.
    """

    def check(match):
        end = match.start()
        for start in range(end - least, max(0, end - most) - 1, -1):
            if start >= 0 and _compiled(before).fullmatch(match.string, start, end):
                return (start, match.end()) if _varied(match) else None
        return None

    return check


_discord_span = _after(rf"{_RUN}[MNO][A-Za-z0-9]{{22,27}}", 23, 28)


def _discord(match):
    """The span with the first part, which is the base64 of the bot's number."""
    span = _discord_span(match)
    return span if span and _unbase64(match.string[span[0] : match.start()]).isdigit() else None


def _unbase64(text):
    """The bytes of base64 text whatever its padding; empty when it is none."""
    import binascii

    text = text.rstrip("=")
    try:
        return binascii.a2b_base64(text[: len(text) - (len(text) % 4 == 1)] + "==")
    except binascii.Error:
        return b""


def _basic(match):
    """The span of `Basic` credentials that decode to `user:password` or stand in an Authorization header."""
    user, _, password = _unbase64(match[1]).partition(b":")
    before = match.string[max(0, match.start() - 24) : match.start()].lower()
    known = user and password and user.isascii() and user.decode("ascii").isprintable()
    if password.lower() in (b"password", b"pass", b"open sesame") or not (known or "authorization" in before):
        return None
    return match.span(1) if known or _looks_random(match[1]) else None


def _bearer(match):
    """The span of a bearer token, not of a word after `Bearer`."""
    return match.span(1) if _looks_random(match[1]) else None


def _openai(match):
    """The span of an sk- key; words joined by hyphens have no long part of letters and digits."""
    parts = [part for part in re.split("[-_]", match[0]) if len(part) >= 16]
    return _varied(match) if any(_mixed(part) or len(part) >= 40 for part in parts) else None


def _url_password(match):
    """The span of the password in `scheme://user:password@host`; digits alone count from six up."""
    value = match[1]
    if _compiled("[0-9]{6,}$").match(value):
        return match.span(1) if "1234567890" not in value else None
    return match.span(1) if len(value) >= 5 and _looks_secret(value) else None


def _dsn(match):
    """The span of the password in `user:password@tcp(host:port)/name`."""
    user, _, value = match.string[max(0, match.start() - 70) : match.start()].rpartition(":")
    if not _compiled("[A-Za-z0-9_.-]").match(user[-1:]) or not _compiled("[!-~]{4,64}$").match(value):
        return None
    return (match.start() - len(value), match.start()) if _looks_secret(value) else None


# The beginning of an option -> the commands that take a password so; the first that fits holds.
_COMMANDS = (
    ("-p ", ("sshpass", "docker login")),
    ("-p", ("sshpass", "mysql")),
    ("-a", ("redis-cli",)),
    ("-", ("curl",)),
)


def _option(match):
    """The span of a password in an option whose command stands before it in the line."""
    span = _value_span(match, _looks_secret)
    if not span:
        return None
    line = match.string[max(0, match.start() - 300) : match.start()].rpartition("\n")[2]
    names = next(names for option, names in _COMMANDS if match["option"].startswith(option))
    return span if any(name in line for name in names) else None


def _command(match):
    """The span of a password given in words, or in an option that many commands have."""
    return _value_span(match, _looks_random if match[0].startswith("--") else _looks_secret)


# One row a rule: kind, keywords, pattern, check. The more specific kind stands higher.
# fmt: off
_ROWS = (
    ("private-key", ("-----begin ", "---- begin ", "putty-user-key-file-"),
     r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[0-9]: [a-z]"
     r"|---- BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY ----", _private_key),
    ("age-key", ("age-secret-key-1",), rf"{_START}AGE-SECRET-KEY-1[A-Z0-9]{{50,64}}{_END}", _varied),
    ("aws-access-key-id", ("akia",), rf"{_START}AKIA[A-Z0-9]{{16}}{_END}", _varied),
    ("aws-access-key-id", ("asia", "abia", "acca"),
     rf"{_START}A(?:SI|BI|CC)A[A-Z0-9]{{16}}{_END}", _mixed_token),
    ("aws-secret-key", ("aws", "secretaccesskey", "secret access key"),
     r"(?i)(?:aws[_ .-]?secret[_ -]?(?:access[_ -]?)?key|secret ?access ?key)[\"'`*]{0,3}[ \t]{0,8}"
     r"(?:=>|:?=|[:：|])[ \t]{0,8}[\"'`*]{0,3}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])", _varied),
    ("github-fine-grained", ("github_pat_",), rf"{_RUN}github_pat_[A-Za-z0-9_]{{50,255}}", _varied),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
     rf"{_START}gh[pousr]_[A-Za-z0-9]{{36,255}}", _varied),
    ("gitlab-pat", ("glpat-",), rf"{_RUN}glpat-[A-Za-z0-9_-]{{20,300}}(?:\.[a-z0-9.]{{2,20}})?", _varied),
    ("gitlab-token",
     ("gldt-", "glrt-", "glrtr-", "glft-", "glsoat-", "glcbt-", "glptt-", "glagent-", "gloas-", "glimt-"),
     rf"{_RUN}gl(?:dt|rtr?|ft|soat|cbt|ptt|agent|oas|imt)-[A-Za-z0-9_-]{{20,300}}(?:\.[a-z0-9.]{{2,20}})?",
     _mixed_token),
    ("slack-webhook", ("hooks.slack.com/",),
     r"hooks\.slack\.com/(?:services|workflows|triggers)/T[A-Za-z0-9/_]{20,120}", _varied),
    ("slack-token", ("xox", "xapp-"), rf"{_RUN}(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{{20,250}}", _mixed_token),
    ("discord-webhook", ("/api/webhooks/",), r"/api/webhooks/[0-9]{16,20}/[A-Za-z0-9_-]{50,100}", _varied),
    ("chat-webhook",
     ("/open-apis/bot/", "oapi.dingtalk.com/robot/send?access_token=", "/cgi-bin/webhook/send?key="),
     r"/open-apis/bot/(?:v2/)?hook/[A-Za-z0-9-]{30,40}|oapi\.dingtalk\.com/robot/send\?access_token=[0-9a-f]{64}"
     r"|/cgi-bin/webhook/send\?key=[0-9a-f-]{36}", _varied),
    ("google-api-key", ("aiza",), rf"{_START}AIza[A-Za-z0-9_-]{{35}}{_END}", _varied),
    ("google-oauth", ("gocspx-",), rf"{_RUN}GOCSPX-[A-Za-z0-9_-]{{24,40}}", _varied),
    ("google-oauth", ("ya29.",), rf"{_RUN}ya29\.[A-Za-z0-9_-]{{30,600}}", _varied),
    ("anthropic", ("sk-ant-",), rf"{_RUN}sk-ant-[A-Za-z0-9_-]{{24,200}}", _mixed_token),
    ("openrouter", ("sk-or-",), rf"{_RUN}sk-or-(?:v[0-9]-)?[A-Za-z0-9]{{32,100}}", _mixed_token),
    ("openai-key", ("sk-",), rf"{_RUN}sk-[A-Za-z0-9_-]{{20,250}}", _openai),
    ("huggingface", ("hf_", "api_org_"), rf"{_START}(?:hf|api_org)_[A-Za-z0-9]{{30,40}}{_END}", _varied),
    ("ai-service-key", ("gsk_", "xai-", "pplx-", "r8_", "tvly-", "nvapi-", "bce-v3/", "fc-"),
     rf"{_START}(?:gsk_[A-Za-z0-9]{{48,60}}|xai-[A-Za-z0-9]{{70,90}}|pplx-[A-Za-z0-9]{{40,60}}|fc-[0-9a-f]{{32}}"
     r"|r8_[A-Za-z0-9]{36,44}|tvly-(?:dev-|prod-)?[A-Za-z0-9]{28,40}|nvapi-[A-Za-z0-9_-]{60,70}"
     rf"|bce-v3/ALTAK-[A-Za-z0-9]{{16,30}}/[0-9a-f]{{40}}){_END}", _mixed_token),
    ("jwt", ("eyj",),
     rf"{_RUN}eyJ[A-Za-z0-9_-]{{10,2000}}\.ey[A-Za-z0-9_-]{{10,6000}}\.[A-Za-z0-9_-]{{10,1400}}", _varied),
    ("stripe-live", ("sk_live_", "rk_live_"), rf"{_START}[sr]k_live_[A-Za-z0-9]{{16,250}}", _mixed_token),
    ("stripe-live", ("whsec_",), rf"{_START}whsec_[A-Za-z0-9+/]{{32,64}}", _mixed_token),
    ("sendgrid", ("sg.",), rf"{_START}SG\.[A-Za-z0-9_-]{{16,32}}\.[A-Za-z0-9_-]{{32,64}}", _mixed_token),
    ("twilio", ("sk",), rf"{_START}SK[0-9a-f]{{32}}{_END}", _mixed_token),
    ("mailgun", ("key-",), rf"{_START}key-[0-9a-f]{{32}}{_END}", _mixed_token),
    ("npm-token", ("npm_",), rf"{_START}npm_[A-Za-z0-9]{{36}}{_END}", _varied),
    ("pypi-token", ("pypi-age",), rf"{_RUN}pypi-AgE[A-Za-z0-9_-]{{40,1000}}", _varied),
    ("telegram-bot", (":aa",), rf":AA[A-Za-z0-9_-]{{32,35}}{_END}", _after("(?<![0-9])[0-9]{8,10}", 8, 10)),
    ("discord-bot", (".",), rf"\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,40}}{_END}", _discord),
    ("digitalocean", ("dop_v1_", "doo_v1_", "dor_v1_"),
     rf"{_START}do[opr]_v1_[a-f0-9]{{64}}{_END}", _mixed_token),
    ("shopify", ("shpat_", "shpca_", "shppa_", "shpss_"),
     rf"{_START}shp(?:at|ca|pa|ss)_[a-fA-F0-9]{{32}}{_END}", _varied),
    ("hashicorp-vault", ("hvs.", "hvb.", "hvr."), rf"{_RUN}hv[sbr]\.[A-Za-z0-9_-]{{24,300}}", _mixed_token),
    ("databricks", ("dapi",), rf"{_START}dapi[a-f0-9]{{32}}(?:-[0-9])?{_END}", _mixed_token),
    ("grafana", ("glsa_", "glc_"),
     rf"{_START}gl(?:sa_[A-Za-z0-9]{{32}}_[A-Fa-f0-9]{{8}}|c_[A-Za-z0-9+/=]{{32,400}})", _mixed_token),
    ("linear", ("lin_api_", "lin_oauth_"),
     rf"{_START}lin_(?:api|oauth)_[A-Za-z0-9]{{40,64}}{_END}", _mixed_token),
    ("notion", ("ntn_", "secret_"),
     rf"{_START}(?:ntn_[0-9]{{11}}[A-Za-z0-9]{{35}}|secret_[A-Za-z0-9]{{43}}){_END}", _mixed_token),
    ("postman", ("pmak-",), rf"{_START}PMAK-[a-f0-9]{{24}}-[a-f0-9]{{34}}{_END}", _mixed_token),
    ("service-token",
     ("dckr_pat_", "dckr_oat_", "dp.pt.", "figd_", "sbp_", "sb_secret_", "pscale_", "nfp_", "hrku-", "nrak-",
      "sntrys_", "sntryu_", "rubygems_", "pul-", "atatt3", "sq0csp-", "lsv2_", "tskey-"),
     rf"{_START}(?:dckr_[po]at_[A-Za-z0-9_-]{{27,40}}|dp\.pt\.[A-Za-z0-9]{{40,44}}|figd_[A-Za-z0-9_-]{{38,60}}"
     r"|sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{22,50}|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"
     r"|nfp_[A-Za-z0-9]{36}|HRKU-[A-Za-z0-9_-]{36,70}|NRAK-[A-Z0-9]{27}|sntry[su]_[A-Za-z0-9+/=_-]{40,250}"
     r"|rubygems_[a-f0-9]{48}|pul-[a-f0-9]{40}|ATATT3[A-Za-z0-9_=-]{60,250}|sq0csp-[A-Za-z0-9_-]{43}"
     rf"|lsv2_(?:pt|sk)_[a-f0-9]{{32}}_[a-f0-9]{{10}}|tskey-[a-z]{{3,8}}-[A-Za-z0-9]{{8,24}}-[A-Za-z0-9]{{20,48}}){_END}",
     _mixed_token),
    ("alibaba-ak", ("ltai",), rf"{_START}LTAI[A-Za-z0-9]{{12,26}}{_END}", _mixed_token),
    ("tencent-ak", ("akid",), rf"{_START}AKID[A-Za-z0-9]{{28,40}}{_END}", _mixed_token),
    ("azure-storage", ("accountkey", "sharedaccesskey"),
     r"(?i)(?:account|sharedaccess)key[ \t]{0,3}=[ \t]{0,3}([A-Za-z0-9+/]{40,90}={1,2})", _varied),
    ("azure-client-secret", ("q~",), rf"(?<=[0-9])Q~[A-Za-z0-9_.~-]{{31,34}}{_END}",
     _after(rf"{_START}[A-Za-z0-9_~.-]{{3}}[0-9]", 4, 4)),
    ("url-password", ("://",),
     r"(?<=[A-Za-z0-9])://[!$-.0-9;=A-Z_a-z~]{0,64}:([!$-+.\-0-9;=A-Z^_a-z{}~:*]{1,128})@(?!sha256:)[A-Za-z0-9$%{\[<]",
     _url_password),
    ("connection-string", ("@tcp(", "@unix("), r"@(?:tcp|unix)\(", _dsn),
    ("basic-header", ("basic",), rf"(?i){_START}basic[ \t]{{1,4}}([A-Za-z0-9+/_-]{{8,500}}={{0,2}})", _basic),
    ("bearer-header", ("bearer", "authorization"),
     rf"(?i){_START}(?:bearer|authorization[\"']?[ \t]{{0,4}}[:=][ \t]{{0,4}}[\"']?"
     r"(?:bearer|token|apikey|key)?)[ \t]{1,4}([A-Za-z0-9._~+/-]{16,1000}={0,2})", _bearer),
    ("command-password", (" -p", " -u", " --user", " -a "),
     rf" (?P<option>-p {{0,4}}|(?:-u|--user)[ =]{{0,4}}[\"']?[A-Za-z0-9_.@-]{{1,60}}:|-a {{1,4}}){_VALUE}",
     _option),
    ("command-password", ("identified", "login ", "requirepass", "--pass", "--token", "--secret", "--api"),
     r"(?i)(?:identified (?:with [!-~]{1,40} )?by|login[ \t]{1,4}[!-~]{1,60}\s{1,8}password|requirepass"
     rf"|--(?:password|passwd|pass|token|secret|api-?key))[ \t]{{1,4}}{_VALUE}", _command),
    ("password-assignment",
     ("pass", "pwd", "secret", "token", "credential", "key", "_auth", "密码", "密碼", "口令", "密钥", "密鑰",
      "密匙", "秘钥", "秘鑰", "金鑰", "金钥", "私钥", "私鑰", "令牌", "凭证", "凭据", "憑證", "憑據", "权杖", "パス",
      "비밀번호"),
     _ASSIGNMENT, _assigned),
)
# fmt: on
RULES = tuple(Rule(*row) for row in _ROWS)
KINDS = tuple(dict.fromkeys(rule.kind for rule in RULES))
