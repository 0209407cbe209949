"""What ``interlock demo`` asks the service: short conversations in many languages, easy and hard."""

from __future__ import annotations

from typing import Any, Final

_PIXEL: Final = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
_BOOK_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "book_table",
        "description": "Reserve a table in a restaurant",
        "parameters": {
            "type": "object",
            "properties": {"restaurant": {"type": "string"}, "people": {"type": "integer"}, "time": {"type": "string"}},
            "required": ["restaurant", "people", "time"],
        },
    },
}


def _user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _ask(content: object) -> dict[str, Any]:
    return {"messages": [_user(content)]}


CONVERSATIONS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("English, greeting", _ask("Good morning! How are you today?")),
    (
        "English, proof",
        _ask("Prove that every continuous function on a closed interval is uniformly continuous, then give a counterexample on (0,1)."),
    ),
    ("Chinese, debugging", _ask("这段代码偶尔会死锁:线程 A 先锁 m1 再锁 m2,线程 B 顺序相反。请找出原因,并改写成不会死锁的版本。")),
    ("Japanese, code", _ask("CSVファイルを読み込み、日付ごとに売上を集計して折れ線グラフを描くPythonスクリプトを書いてください。")),
    ("Arabic, greeting", _ask("صباح الخير! كيف حالك اليوم؟")),
    ("Hindi, knowledge", _ask("भारत की सबसे लंबी नदी कौन सी है और वह किन राज्यों से होकर बहती है?")),
    ("Thai, arithmetic", _ask("ร้านหนึ่งลดราคา 20% แล้วลดเพิ่มอีก 15% จากราคาที่ลดแล้ว สินค้าราคา 1,200 บาทจะเหลือกี่บาท แสดงวิธีคิดทีละขั้น")),
    ("Swahili, summary", _ask("Nieleze kwa sentensi mbili jinsi mvua inavyotokea, kwa lugha rahisi kwa mtoto wa miaka kumi.")),
    (
        "Russian, design",
        _ask(
            "Спроектируй распределённую очередь задач с гарантией «ровно один раз»: опиши протокол, отказы узлов и докажи, что потерь нет."
        ),
    ),
    ("Greek, translation", _ask("Μετάφρασε στα αγγλικά: «Το καράβι φεύγει αύριο το πρωί στις έξι».")),
    ("Korean, debugging", _ask("리스트를 순회하면서 원소를 지웠더니 일부 원소가 남습니다. 왜 그런가요? `for x in a: a.remove(x)`")),
    (
        "Turkish, code",
        _ask("Verilen bir metindeki en uzun palindromu bulan, karmaşıklığı O(n) olan bir fonksiyon yaz ve neden doğru olduğunu açıkla."),
    ),
    ("Spanish, with a tool", {**_ask("Reserva una mesa para cuatro en Casa Lola mañana a las nueve."), "tools": [_BOOK_TOOL]}),
    (
        "French, with an image",
        _ask([{"type": "text", "text": "Que voit-on sur cette photo ?"}, {"type": "image_url", "image_url": {"url": _PIXEL}}]),
    ),
    (
        "German, third turn on a cached model",
        {
            "messages": [
                _user("Schreibe eine Funktion, die Primzahlen siebt."),
                {"role": "assistant", "content": "def sieve(n): ..."},
                _user("Danke! Und jetzt noch einen Test dazu."),
            ],
            "current_model": "claude-sonnet-5-5",
        },
    ),
    (
        "Vietnamese, just compacted",
        {
            "messages": [
                _user("Tóm tắt: đã sửa xong hai lỗi trong bộ phân tích cú pháp."),
                {"role": "assistant", "content": "Đã rõ."},
                _user("Cảm ơn, vậy là đủ rồi."),
            ],
            "current_model": "claude-opus-5-5",
            "compacted": True,
        },
    ),
)
