"""Secret fields of forms, found by words of many languages: no server may ask for secrets in a form.

A word that is found warns, and may refuse by a rule; a form in which none is found is not harmless
for that. Accents, letters that look like Latin ones, and marks that are not seen make no difference.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# each names a secret
STRONG_WORDS = (
    # English, and what many languages have taken from it
    r"pass(?:word|wd|phrase|code|key)s?", r"\bpwd?\b", r"\bpin(?:[ -]?code)?\b", r"\bpincode\b",
    r"private[ _-]?key", r"\bcv[cv]2?\b", r"card[ _-]?(?:number|no\b|verification)", r"security[ _-]?code",
    r"one[ _-]?time", r"\botp\b", r"\b(?:2fa|mfa|tan)\b", r"(?:seed|recovery)[ _-]?(?:phrase|words?)",
    r"mnemonic", r"\bssn\b", r"social[ _-]?security", r"verification[ _-]?code",
    # German, Dutch, the languages of the north
    r"passwort", r"kennwort", r"geheimzahl", r"prufziffer", r"kreditkartennummer", r"kartennummer",
    r"losungswort", r"zugangscode", r"sicherheitscode", r"bestatigungscode", r"wachtwoord", r"toegangscode",
    r"kaartnummer", r"losenord", r"passord", r"adgangskode", r"kodeord", r"kortnummer", r"salasana", r"tunnusluku",
    r"lykilord", r"aðgangsord",
    # French, Spanish, Portuguese, Italian, Catalan, Romanian
    r"mots? de passe", r"code (?:secret|pin|de securite|de verification)", r"cryptogramme", r"numero de (?:la )?carte",
    r"cle privee", r"contrase(?:n|ny)as?", r"(?<!palabra )(?<!palabras )\bclave\b", r"codigo de (?:seguridad|verificacao|verificacion|seguranca)",
    r"numero d[eo] (?:la |su |sua |seu )?(?:tarjeta|cartao)", r"\bsenhas?\b", r"palavra[ -]passe", r"parola d.ordine",
    r"\bparola\b", r"codice (?:di sicurezza|segreto|pin|di verifica)", r"numero (?:della |di )?carta", r"chiave privata",
    r"frase (?:semilla|semente|de recuperacion)",
    # Polish, Czech, Slovak, Hungarian, Slovenian and Croatian, the languages of the Baltic
    r"\bhas[lł]o\b", r"\bhes[lł][oa]\b", r"numer karty", r"cislo karty", r"kod (?:weryfikacyjny|bezpieczenstwa)",
    r"jelszo", r"kartyaszam", r"\bgeslo\b", r"lozink[aeu]", r"zaporka", r"slaptazod", r"\bparole\b", r"\bparool",
    # Turkish, Indonesian and Malay, Vietnamese, Swahili, Filipino
    r"\bs(?:i|\u0131)fre", r"kart numaras", r"guvenlik kodu", r"kata (?:sandi|laluan)", r"nomor kartu", r"mat khau", r"ma xac (?:minh|nhan)",
    r"nenosiri", r"neno la siri",
    # Russian, Ukrainian, Bulgarian, Serbian, Greek
    "парол", "пин-?код", r"\bпин\b", "номер.? карт", "код подтвержден", "одноразов", "секретн", r"приватн\w* ключ",
    r"закрыт\w* ключ", "лозинк", "κωδικ", "συνθηματικ", "αριθμο[σς]? καρτας",
    # Arabic, Persian, Urdu, Hebrew
    "كلمة (?:المرور|السر)", "كلمه (?:المرور|السر)", "الرقم السري", "رمز (?:التحقق|المرور|عبور)", "گذرواژه", "پاس ?ورڈ",
    "סיסמ", "קוד אימות", "מספר כרטיס",
    # Hindi, Bengali, Tamil, Thai
    "पासवर्ड", "कूटशब्द", "পাসওয়ার্ড", "கடவுச்சொல்", "รหัสผ่าน", "รหัส otp", "เลขบัตร",
    # Chinese, Japanese, Korean
    "密码", "密碼", "口令", "验证码", "驗證碼", "私钥", "私鑰", "卡号", "卡號", "助记词", "助記詞", "安全码", "安全碼",
    "パスワード", "パスフレーズ", "暗証番号", "合言葉", "認証コード", "確認コード", "カード番号", "秘密鍵", "セキュリティコード",
    "비밀번호", "패스워드", "암호", "인증 ?번호", "인증 ?코드", "카드 ?번호", "개인 ?키", "보안 ?코드",
)  # fmt: skip

# each names one, and in a sentence may only be spoken about
WEAK_WORDS = (
    r"secret(?!ar)", r"token", r"api[ _-]?key", r"access[ _-]?key", r"credential", r"login code",
    r"geheimnis", r"schlussel", r"zugangsdaten", r"\bjetons?\b", r"cle (?:api|d.acces|secrete)", r"identifiants",
    r"clave (?:api|secreta)", r"credencial", r"chave (?:api|de acesso|secreta)", r"credenziali", r"chiave (?:api|segreta)",
    r"\bsleutel", r"nyckel", r"klucz", r"anahtar", "токен", "ключ", "διακριτικ", "مفتاح", "אסימון", "מפתח", "टोकन", "कुंजी",
    "令牌", "密钥", "密鑰", "凭证", "憑證", "凭据", "トークン", "認証情報", "アクセスキー", "토큰", "인증 ?키", "api ?키",
)  # fmt: skip

LOOKALIKES = str.maketrans("асеіјорѕтухԁһӏмкνορτυκι", "aceijopstyxdhlmkvoptuki")

# names of fields that say nothing about what goes into them
VAGUE_PATTERN = re.compile(
    r"(?:(?:the|your|my|new)?\s*(?:value|input|text|answer|response|reply|field|data|string|content|entry|"
    r"info|information|details?|key|code|word|phrase|val|arg|param|result|it|x|y|v|s)?\s*\d*)?"
)

FREE_TYPES = frozenset({"string", "number", "integer"})
MAX_TEXT_CHARS = 20_000


def fold_text(text: str) -> str:
    """A text in small letters, without accents and without marks that are not seen."""
    plain = unicodedata.normalize("NFKD", text[:MAX_TEXT_CHARS])
    return "".join(c for c in plain if unicodedata.category(c) not in {"Mn", "Cf"}).casefold()


def _compile_words(patterns: Iterable[str]) -> re.Pattern[str]:
    # what is folded on one side is folded on the other; no pattern has a class of large letters
    return re.compile("|".join(fold_text(one) for one in patterns))


_STRONG_PATTERN, _WEAK_PATTERN = _compile_words(STRONG_WORDS), _compile_words(WEAK_WORDS)


def find_secret_fields(message: str, blanks: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a form that look as if they asked for a secret.

    By their own words; and where the question speaks of a secret and no field says that it is one, by
    that: all that something can be written into, or those whose names say nothing.

    Args:
        message: the question.
        blanks: schemas of the fields, by name.
    """
    named = [name for name, blank in blanks.items() if _is_secret(_split_words(name, blank))]
    if named:
        yield from named
        return
    forms = tuple(_read_lookalikes(message))
    strong, weak = (
        any(one.search(form) for form in forms) for one in (_STRONG_PATTERN, _WEAK_PATTERN)
    )
    if not strong and not weak:
        return
    for name, blank in blanks.items():
        if _is_free(blank) and (strong or _is_vague(name, blank)):
            yield name


def _is_secret(text: str) -> bool:
    return any(
        _STRONG_PATTERN.search(form) or _WEAK_PATTERN.search(form)
        for form in _read_lookalikes(text)
    )


def _read_lookalikes(text: str) -> Iterator[str]:
    """A text as it is, and with letters as what they look like."""
    plain = fold_text(text)
    yield plain
    seen = plain.translate(LOOKALIKES)
    if seen != plain:
        yield seen


def _split_words(name: str, blank: Any) -> str:
    """Split the name of a field into words, as of ``apiKey`` and ``api_key``, with its description."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name)
    told = _read_texts(blank, "title", "description", "format")
    return " \n".join([name, spaced, *told])


def _read_texts(blank: Any, *keys: str) -> list[str]:
    return [str(blank.get(key, "")) for key in keys] if isinstance(blank, Mapping) else []


def _is_free(blank: Any) -> bool:
    """Whether something of one's own can be written into it."""
    if not isinstance(blank, Mapping) or blank.get("type", "string") not in FREE_TYPES:
        return False
    return not any(key in blank for key in ("enum", "oneOf", "const"))


def _is_vague(name: str, blank: Any) -> bool:
    words = [name.replace("_", " "), *_read_texts(blank, "title", "description")]
    return all(VAGUE_PATTERN.fullmatch(fold_text(one).strip()) for one in words)
