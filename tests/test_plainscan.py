"""The yardstick of the search: what is drawn from a text, and what a plain look through texts finds."""

import random

import pytest

from mcore.plainscan import SCRIPTS, draw, holds, plain

TEXTS = {
    "latin": "the Redis server",
    "identifier": "see id_ed25519 and ecs-prod or src/auth.py",
    "number": "since 2.6.10 of 2024",
    "phrase": "no such column here",
    "han": "阿里云的服务器",
    "kana": "サーバーの設定ファイル",
    "hangul": "서버 설정 파일",
    "thai": "ฐานข้อมูลสำรอง",
    "lao": "ຖານຂໍ້ມູນ",
    "khmer": "មូលដ្ឋានទិន្នន័យ",
    "burmese": "ဒေတာဘေ့စ်",
    "cyrillic": "резервная копия",
    "greek": "βάση δεδομένων",
    "arabic": "قاعدة البيانات",
    "hebrew": "מסד נתונים",
    "indic": "डेटाबेस बैकअप",
    "other": "მონაცემთა ბაზა",
    "glued": "先连接ecs-prod后",
    "mixed": "先连接ecs-prod后",
    "wide": "型号ＡＢＣ１２３号",
}


def test_every_script_has_its_text():
    assert set(TEXTS) == set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_is_drawn_stands_in_the_text_and_is_found_there(script):
    text, rng, drawn = TEXTS[script], random.Random(1), set()
    for _ in range(50):
        for piece in draw(text, rng.randrange):
            assert text[piece.start : piece.end] == piece.query
            assert holds(plain(text), plain(piece.query))
            drawn.add(piece.script)
    assert script in drawn


def test_nothing_is_drawn_from_nothing():
    assert [piece for text in ("", " ", "，。🚀 --") for piece in draw(text, lambda n: 0)] == []


@pytest.mark.parametrize(
    "text, query, held",
    [
        ("连接redis后", "redis", True),
        ("redis_cache", "REDIS", True),
        ("ｒｅｄｉｓ", "redis", True),
        ("re\u200bdis", "redis", True),
        ("redis🦀", "redis", True),
        ("nginxмир", "nginx", True),
        ("bảo", "b", False),
        ("a\n b", "a b", True),
        ("redistribute redis", "redis", True),
        ("阿里云", "里云", True),
        ("阿里云", "云", True),
        ("版本2.6.10。", "2.6.10", True),
        ("redistribute", "redis", False),
        ("12.6.10", "2.6.10", False),
        ("é̂tat", "e", False),
        ("阿里巴云", "里云", False),
        ("anything", "", False),
    ],
)
def test_a_text_holds_whole_words_and_any_part_of_an_unspaced_run(text, query, held):
    assert holds(plain(text), plain(query)) is held
