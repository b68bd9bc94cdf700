"""Settings in the Dockerfile, and as both builders write them into the history."""

from __future__ import annotations

import pytest

from gpudoctor.containers.builds.settings import setting_asked_for, setting_written


@pytest.mark.parametrize(
    ("instruction", "written"),
    [
        pytest.param("USER a b", "a b", id="USER"),
        pytest.param("STOPSIGNAL SIGINT", "SIGINT", id="STOPSIGNAL"),
        pytest.param("VOLUME /a /b", "[/a /b]", id="VOLUME"),
        pytest.param("SHELL /bin/sh -ec", "[/bin/sh -ec]", id="SHELL"),
        pytest.param("EXPOSE 80 443/udp 9000-9001", "443/udp 80 9000-9001", id="EXPOSE of the classic builder"),
        pytest.param(
            "EXPOSE 80 443/udp 9000-9001",
            "map[443/udp:{} 80/tcp:{} 9000/tcp:{} 9001/tcp:{}]",
            id="EXPOSE of BuildKit",
        ),
        pytest.param("EXPOSE 80 443/udp", "[80/tcp 443/udp]", id="EXPOSE of newer BuildKits"),
        pytest.param("HEALTHCHECK NONE", '&{["NONE"] "0s" "0s" "0s" \'\\x00\'}', id="no HEALTHCHECK"),
        pytest.param(
            'HEALTHCHECK CMD ["true", "x y"]', '&{["CMD" "true" "x y"] "5s" "0s" "0s" \'\\x02\'}', id="HEALTHCHECK"
        ),
        pytest.param(
            "HEALTHCHECK CMD curl -f http://x || exit 1",
            '&{["CMD-SHELL" "curl -f http://x || exit 1"] "0s" "0s" "0s" "0s" \'\\t\'}',
            id="HEALTHCHECK of a shell",
        ),
    ],
)
def test_one_setting_is_one_text(instruction: str, written: str) -> None:
    name, _, rest = instruction.partition(" ")
    assert setting_asked_for(name, rest.split(), rest) == setting_written(name, written)


@pytest.mark.parametrize(
    ("instruction", "written"),
    [
        pytest.param("USER a", "b", id="USER"),
        pytest.param("EXPOSE 80", "map[80/udp:{}]", id="another protocol"),
        pytest.param("EXPOSE 80-82", "map[80/tcp:{} 82/tcp:{}]", id="a port less"),
        pytest.param("HEALTHCHECK NONE", '&{["CMD" "true"] "0s" "0s" "0s" \'\\x00\'}', id="no HEALTHCHECK any more"),
        pytest.param("HEALTHCHECK CMD true", '&{["CMD" "true"] "0s" "0s" "0s" \'\\x00\'}', id="another form"),
    ],
)
def test_another_setting_is_another_text(instruction: str, written: str) -> None:
    name, _, rest = instruction.partition(" ")
    assert setting_asked_for(name, rest.split(), rest) != setting_written(name, written)
