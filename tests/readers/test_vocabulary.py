"""The words of a report that distinguish causes."""

from gpudoctor.data.tables import load_table
from gpudoctor.readers.report import read_texts
from gpudoctor.readers.vocabulary import LONGEST, known_words, phrases_in, words_in


def test_numbers_are_one_word_and_chinese_is_read_in_pairs() -> None:
    assert words_in("torch 2.3.1+cu118, rtx3060 显卡驱动") == {"torch", "cu#", "rtx#", "显卡", "驱动"}


def test_a_phrase_is_a_word_with_its_neighbour() -> None:
    assert phrases_in("i ask: is it ok?") == {
        *("i", "ask", ":", "is", "it", "ok", "?"),
        *("i+ask", "ask+:", ":+is", "is+it", "it+ok", "ok+?"),
    }


def test_only_words_and_phrases_of_the_tables_are_kept_in_order() -> None:
    tables = load_table("word_weights")["words"].keys() | load_table("concern_weights")["words"].keys()
    found = known_words("xyzzyplugh in docker, docker sees no gpu")
    assert {"docker", "gpu", "in", "no", "sees", "in+docker"} <= {*found} <= tables
    assert list(found) == sorted(found)


def test_a_long_text_is_read_at_its_beginning() -> None:
    assert "driver" not in known_words("docker " + "x " * LONGEST + "driver")


def test_texts_that_build_on_each_other_join_their_words() -> None:
    snapshot = read_texts([("a.txt", b"my RTX 3060 in docker"), ("b.txt", b"the driver of the RTX 3060")])
    assert snapshot.words
    assert {"docker", "driver"} <= {*snapshot.words}


def test_words_alone_make_no_report() -> None:
    assert known_words("system code version")
    assert read_texts([("notes.txt", b"system code version")]).words is None
