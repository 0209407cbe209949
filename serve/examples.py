"""Requests that the OpenAPI page offers to try."""

from __future__ import annotations

from typing import Any, Final

from fastapi.openapi.models import Example

_WEATHER_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "get_forecast",
        "description": "Weather forecast for a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]},
    },
}
_PIXEL: Final = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


def _ask(summary: str, text: str, **more: Any) -> Example:
    return {"summary": summary, "value": {"messages": [{"role": "user", "content": text}], **more}}


REQUEST_EXAMPLES: Final[dict[str, Example]] = {
    "english": _ask("English, code", "Write a Python function that merges overlapping intervals, and explain its running time."),
    "chinese": _ask("Chinese, debugging", "这段代码偶尔会死锁:两个线程以不同的顺序获取同一对锁。请解释原因并给出修复方法。"),
    "arabic": _ask("Arabic, a greeting", "صباح الخير! كيف حالك اليوم؟"),
    "thai": _ask("Thai, reasoning", "รถไฟออกจากสถานีเวลา 9:40 น. วิ่งด้วยความเร็ว 90 กม./ชม. จะถึงปลายทางที่อยู่ห่าง 210 กม. เวลาเท่าไร"),
    "hindi_tools": _ask("Hindi, with a tool", "अगले तीन दिन पुणे में मौसम कैसा रहेगा?", tools=[_WEATHER_TOOL]),
    "swahili": _ask("Swahili, with the language given", "Nieleze kwa ufupi jinsi mvua inavyotokea.", language="sw"),
    "image": {
        "summary": "An image with a question",
        "value": {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "¿Qué dice este cartel?"},
                        {"type": "image_url", "image_url": {"url": _PIXEL}},
                    ],
                }
            ]
        },
    },
    "compacted": {
        "summary": "After a compaction the model may change",
        "value": {
            "messages": [
                {"role": "user", "content": "Сводка: исправлены два теста, осталось переименовать модуль."},
                {"role": "assistant", "content": "Понял, продолжаю."},
                {"role": "user", "content": "Хорошо, переименуй модуль и запусти тесты."},
            ],
            "current_model": "claude-opus-5-5",
            "compacted": True,
            "max_tokens": 800,
        },
    },
}
