"""Languages, families and token estimates on texts of our own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.errors import InvalidInput
from router.files.artifacts import language_identifier
from router.languages import (
    FAMILIES,
    FAMILY_OF,
    LanguageIdentifier,
    check_language,
    estimate_tokens,
    family_of,
    identify_language,
    script_statistics,
    token_costs,
    without_surrogates,
)

# One question in many languages with its length in tokens of a byte-level BPE of 151,387 merges (that of Qwen2.5).
SENTENCES = {
    "en": ("Please explain why this function returns the wrong total when the list is empty.", 15),
    "de": ("Bitte erkläre mir, warum diese Funktion bei einer leeren Liste die falsche Summe liefert.", 23),
    "fr": ("Pouvez-vous expliquer pourquoi cette fonction renvoie un mauvais total quand la liste est vide ?", 21),
    "es": ("Explica por qué esta función devuelve un total equivocado cuando la lista está vacía, por favor.", 21),
    "pl": ("Wyjaśnij, proszę, dlaczego ta funkcja zwraca błędną sumę, gdy lista jest pusta.", 31),
    "lt": ("Prašau paaiškinti, kodėl ši funkcija grąžina neteisingą sumą, kai sąrašas tuščias.", 40),
    "fi": ("Selitä, miksi tämä funktio palauttaa väärän summan, kun lista on tyhjä.", 29),
    "tr": ("Liste boş olduğunda bu fonksiyonun neden yanlış toplam döndürdüğünü açıklar mısın?", 30),
    "vi": ("Hãy giải thích vì sao hàm này trả về tổng sai khi danh sách rỗng.", 22),
    "id": ("Tolong jelaskan mengapa fungsi ini mengembalikan jumlah yang salah ketika daftarnya kosong.", 26),
    "sw": ("Tafadhali eleza kwa nini programu hii inatoa jumla isiyo sahihi orodha ikiwa tupu.", 34),
    "ru": ("Объясни, пожалуйста, почему эта функция возвращает неверную сумму, если список пуст.", 27),
    "uk": ("Поясни, будь ласка, чому ця функція повертає неправильну суму, якщо список порожній.", 42),
    "bg": ("Обясни защо тази функция връща грешна сума, когато списъкът е празен.", 34),
    "el": ("Εξήγησε γιατί αυτή η συνάρτηση επιστρέφει λάθος άθροισμα όταν η λίστα είναι κενή.", 72),
    "hy": ("Բացատրիր, թե ինչու է այս ֆունկցիան սխալ գումար վերադարձնում, երբ ցանկը դատարկ է։", 80),
    "ka": ("ახსენი, რატომ აბრუნებს ეს ფუნქცია არასწორ ჯამს, როცა სია ცარიელია.", 66),
    "he": ("הסבר לי למה הפונקציה הזאת מחזירה סכום שגוי כשהרשימה ריקה.", 24),
    "ar": ("اشرح لي لماذا ترجع هذه الدالة مجموعًا خاطئًا عندما تكون القائمة فارغة.", 26),
    "fa": ("لطفاً توضیح بده چرا این تابع وقتی فهرست خالی است جمع اشتباه برمی\u200cگرداند.", 42),
    "ur": ("براہ کرم بتائیں کہ فہرست خالی ہونے پر یہ فنکشن غلط مجموعہ کیوں دیتا ہے۔", 46),
    "hi": ("कृपया समझाइए कि सूची खाली होने पर यह फ़ंक्शन गलत योग क्यों लौटाता है।", 67),
    "bn": ("তালিকা খালি থাকলে এই ফাংশনটি ভুল যোগফল কেন দেয়, বুঝিয়ে বলুন।", 69),
    "ta": ("பட்டியல் காலியாக இருக்கும்போது இந்தச் செயல்பாடு ஏன் தவறான கூட்டுத்தொகையைத் தருகிறது?", 95),
    "te": ("జాబితా ఖాళీగా ఉన్నప్పుడు ఈ ఫంక్షన్ తప్పు మొత్తాన్ని ఎందుకు ఇస్తుందో వివరించండి.", 118),
    "th": ("ช่วยอธิบายหน่อยว่าทำไมฟังก์ชันนี้คืนผลรวมผิดเมื่อรายการว่างเปล่า", 33),
    "km": ("សូមពន្យល់ថាហេតុអ្វីបានជាអនុគមន៍នេះផ្តល់ផលបូកខុសនៅពេលបញ្ជីទទេ។", 77),
    "am": ("ዝርዝሩ ባዶ ሲሆን ይህ ተግባር ለምን የተሳሳተ ድምር እንደሚመልስ አስረዳኝ።", 59),
    "ko": ("목록이 비어 있을 때 이 함수가 왜 잘못된 합계를 돌려주는지 설명해 주세요.", 27),
    "ja": ("リストが空のとき、この関数が間違った合計を返す理由を説明してください。", 25),
    "zh": ("请解释为什么列表为空时这个函数会返回错误的总和。", 15),
}

# Languages of the parallel corpora, benchmarks and outcome tables that the project trains and reports on.
LANGUAGES = (
    "am ar az bg bn ca cs da de el en es et fa fi fil fr gu ha he hi hu hy id ig is it ja ka kk km kn ko lo lt lv ml mn mr ms "
    "ne nl pl pt pt-BR ro ru sk sr sv sw ta te th tr uk ur uz vi yo zh zh-Hant zu ar-EG bho mas sr-Cyrl sr-Latn ga hr mt nb "
    "nn no sl aeb af ak apc ary arz as awa be bm ceb ckb fuv hne ht ilo jv ki lua mag mai mg my ny om or pa ps qu rw sd si sn "
    "so su tg ti umb wo wuu xh yue"
)


@pytest.fixture(scope="module")
def identifier() -> LanguageIdentifier:
    return language_identifier()


@pytest.mark.parametrize("language", LANGUAGES.split())
def test_every_language_we_report_on_has_a_family(language: str) -> None:
    assert family_of(language) != "Other"
    assert family_of(language) in FAMILIES


def test_families() -> None:
    expected = {"en": "English", "de-AT": "Germanic", "sr_Latn": "Slavic", "ZH-hant": "Sinitic", "fil": "Austronesian", "th": "Kra-Dai"}
    assert {tag: family_of(tag) for tag in expected} == expected
    assert [family_of(tag) for tag in (None, "", "und", "xx")] == ["Other"] * 4


def test_no_language_stands_in_two_families() -> None:
    from router.languages import _FAMILIES

    assert sum(len(codes.split()) for codes in _FAMILIES.values()) == len(FAMILY_OF)


@pytest.mark.parametrize("language", SENTENCES)
def test_identifies_one_sentence(language: str, identifier: LanguageIdentifier) -> None:
    assert identify_language(SENTENCES[language][0], identifier) == language


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        (
            "修复这个函数的错误\ndef total(items):\n    result = 0\n    for item in items:\n        result += item.price",
            "zh",
        ),
        ("このコードを直して\nfor i in range(10):\n    print(items[i], total_price, customer_name)\n    counter += 1", "ja"),
        ("用 React 写一个 todo list component，需要支持 drag and drop", "zh"),
        ("Исправь код:\n```python\nimport numpy as np\nprint(np.zeros(3).sum())\n```", "ru"),
        ("bitte fix den bug in der function, danke dir vielmals", "de"),
        ("Translate 你好 into English and explain how it is used in daily conversation", "en"),
        ("Переведи слово ありがとう на русский язык, пожалуйста", "ru"),
        ('"ありがとう"를 한국어로 번역해 주세요', "ko"),
        ("東京駅の営業時間", "ja"),
        ("電気料金", "ja"),
        ("你好", "zh"),
        ("繁體中文測試：請修正這段程式碼", "zh"),
        ("Objasni mi zašto ova funkcija vraća pogrešan zbir kada je lista prazna, molim te.", "sr hr bs"),
        ("Zašto ova petlja nikada ne završava? Pomozi mi da je popravim.", "sr hr bs"),
        ("Како да поправим ову грешку у програму?", "sr"),
        ("Write a haiku about autumn 🍁", "en"),
        ("Explique pourquoi\ud83d cette fonction échoue toujours avec une liste vide", "fr"),
        ("", "und"),
        ("12345 67 + 8.9", "und"),
        ("🙂🙂👍", "und"),
        ("\ud83d", "und"),
        ("\x00\n\t", "und"),
    ],
)
def test_mixed_short_and_strange_texts(text: str, languages: str, identifier: LanguageIdentifier) -> None:
    assert identify_language(text, identifier) in languages.split()


def test_without_an_identifier_the_script_decides() -> None:
    expected = {"hello": "en", "привет": "ru", "سلام": "ar", "नमस्ते": "hi", "γεια": "el", "안녕": "ko"}
    assert {text: identify_language(text) for text in expected} == expected


@given(st.text(st.characters(codec=None), max_size=200))
def test_any_text_has_an_answer(text: str) -> None:
    assert check_language(identify_language(text))
    assert estimate_tokens(text) >= 0
    assert without_surrogates(text).encode()[:0] == b""
    assert len(without_surrogates(text)) == len(text)


@pytest.mark.parametrize("tag", ["en", "zh-Hant", "pt_BR", "fil", "en-x-custom"])
def test_tags_pass(tag: str) -> None:
    assert check_language(tag) == tag


@pytest.mark.parametrize("tag", ["", "e", "12", "english language", "日本語", "-", "abcdefghi"])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(InvalidInput, match="is not a BCP-47 tag"):
        check_language(tag)


@pytest.mark.parametrize("language", SENTENCES)
def test_token_estimates_are_within_a_factor_of_two(language: str) -> None:
    text, tokens = SENTENCES[language]
    assert 0.5 <= estimate_tokens(text) / tokens <= 2.0


def test_four_characters_a_token_would_be_far_off_where_ours_is_not() -> None:
    text, tokens = SENTENCES["te"]
    assert len(text) / 4 < tokens / 5


@given(st.text(max_size=200), st.text(max_size=200))
def test_tokens_of_a_whole_are_those_of_its_parts(a: str, b: str) -> None:
    assert token_costs(a + b).sum() == pytest.approx(token_costs(a).sum() + token_costs(b).sum())
    assert script_statistics(a + b).tokens == pytest.approx(script_statistics(a).tokens + script_statistics(b).tokens)
    assert estimate_tokens(a + b) >= max(estimate_tokens(a), estimate_tokens(b)) - 1


@given(st.text(st.characters(codec=None), max_size=100))
def test_statistics_count_every_character_once(text: str) -> None:
    statistics = script_statistics(text)
    assert statistics.counts.sum() == len(text)
    assert token_costs(text).shape == (len(text),)
    assert statistics.letters <= len(text)


def test_scripts() -> None:
    statistics = script_statistics("abc 漢字かな 12!🙂")
    assert [statistics.count(script) for script in ("latin", "han", "kana", "digit", "emoji")] == [3, 2, 2, 2, 1]
    assert statistics.main_script == "latin"
    assert script_statistics("12").main_script is None
    assert script_statistics("").share("latin") == 0.0
