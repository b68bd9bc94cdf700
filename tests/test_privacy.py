"""What leaves the machine names no person and no host."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from gpudoctor import privacy
from gpudoctor.privacy import mask, mask_pasted, mask_secrets, mask_uuids
from gpudoctor.probes.host import ProbeContext

ALICE = ProbeContext(environ={}, directory=Path(), home="/home/alice", host_name="lab42")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/home/alice/venv/bin/python", "~/venv/bin/python"),
        ("HOME is /home/alice", "HOME is ~"),
        ("/home/alice2/venv", "/home/user/venv"),
        ("/home/bob/job.py", "/home/user/job.py"),
        ("/Users/carol/job.py", "/Users/user/job.py"),
        (r"C:\Users\Dave\job.py", r"C:\Users\user\job.py"),
        (r"C:\Users\Dave van Dam\job.py", r"C:\Users\user\job.py"),
        ("Nov 3 10:00:00 lab42 kernel: NVRM", "Nov 3 10:00:00 host kernel: NVRM"),
        ("lab420 is another", "lab420 is another"),
        ("/opt/cuda", "/opt/cuda"),
    ],
)
def test_names_are_replaced(text: str, masked: str) -> None:
    assert mask(text, ALICE) == masked


def test_whatever_depth_they_stand_at() -> None:
    facts = {"files": {"/home/alice/a": {"text": "/home/alice"}}, "paths": ["/home/alice/b", 3, None]}
    assert mask(facts, ALICE) == {"files": {"~/a": {"text": "~"}}, "paths": ["~/b", 3, None]}


def test_a_machine_without_a_home_directory() -> None:
    assert mask("/usr/bin", ProbeContext(environ={}, directory=Path(), home="/")) == "/usr/bin"


@pytest.mark.parametrize(
    "text",
    [
        "HF_TOKEN=hf_abcdefghijklmnopqrstu",
        "ghp_abcdefghijklmnopqrstuvwxyz0123",
        "password: hunter22x",
        '"api_key": "a1b2c3d4e5"',
        "--extra-index-url https://me:pw123456@example.org/simple",
        *(f"gh{kind}_abcdefghijklmnopqrstuvwxyz0123" for kind in "ousr"),
        "AKIAABCDEFGHIJKLMNOP",
    ],
)
def test_secrets_become_stars(text: str) -> None:
    masked = mask_secrets(text)
    assert "***" in masked
    assert not any(secret in masked for secret in ("abcdefghij", "hunter22x", "a1b2c3d4e5", "pw123456", "ABCDEFGHIJ"))


HEX = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("secret", [HEX, "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYab"])
@pytest.mark.parametrize("text", ["{}", "I pasted {} there", 'key "{}"'])
def test_a_key_without_a_mark_becomes_stars(secret: str, text: str) -> None:
    assert mask_secrets(text.format(secret)) == text.format("***")


@pytest.mark.parametrize(
    "text",
    [
        *("max_new_tokens=1024", "tokenizers==0.15.2", "Tokenizer: fast", "https://example.org/a@b", "sm_90a"),
        *(f"commit {HEX}", f"flash-attn @ git+https://example.org/a@{HEX}", f"sha256:{HEX}", f"/opt/{HEX}/lib"),
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("alice@lab42:~/work$ nvidia-smi", "user@host:~/work$ nvidia-smi"),
        ("(base) [alice@lab42 work]$ ls", "(base) [user@host work]$ ls"),
        ("root@lab42:/# ls", "root@host:/# ls"),
        ("root@098b49afe624:/# ls", "root@098b49afe624:/# ls"),
        ("write to alice.b@example.org", "write to user@host"),
        ("git clone git@github.com:a/b", "git clone git@github.com:a/b"),
        ("C:\\\\Users\\\\Dave\\\\x", "C:\\\\Users\\\\user\\\\x"),
    ],
)
def test_a_pasted_text_names_nobody(text: str, masked: str) -> None:
    assert mask_pasted(text) == masked


def test_a_masked_uuid_stays_masked() -> None:
    once = mask_uuids(
        {"a": "GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab", "b": ["MIG-5A0C1F9E-11AA-22BB-33CC-0123456789AB"]}
    )
    assert once == {"a": f"GPU-{'0' * 8}-0000-0000-0000-{1:012d}", "b": [f"MIG-{'0' * 8}-0000-0000-0000-{1:012d}"]}
    assert mask_uuids(once) == once


SERVICE_KEYS = (
    "hf_AbCdEfGhIjKlMnOp", "ghp_AbCdEfGhIjKlMnOpQrSt", "gho_AbCdEfGhIjKlMnOpQrSt", "ghu_AbCdEfGhIjKlMnOpQrSt",
    "ghs_AbCdEfGhIjKlMnOpQrSt", "ghr_AbCdEfGhIjKlMnOpQrSt", "github_pat_AbCdEfGhIjKlMnOpQrSt",
    "glpat-AbCdEfGhIjKlMnOp", "sk-AbCdEfGhIjKlMnOpQrSt", "AKIAABCDEFGHIJKLMNOP", "xoxb-1234567890",
    "nvapi-AbCdEfGhIjKlMnOpQrSt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "wandb_v1_AbCdEfGhIjKlMnOpQrSt",
)  # fmt: skip


@pytest.mark.parametrize("key", SERVICE_KEYS)
def test_the_key_of_a_service_is_masked(key: str) -> None:
    assert mask_secrets(f"it says {key} here") == "it says *** here"


@pytest.mark.parametrize("word", ["token", "secret", "passwd", "password", "apikey", "api_key", "MY_TOKEN"])
@pytest.mark.parametrize("assigned", ["=", ": ", "='"])
def test_what_stands_after_such_a_word_is_masked(word: str, assigned: str) -> None:
    masked = mask_secrets(f"{word}{assigned}Abc123def and more")
    assert "Abc123def" not in masked
    assert masked.endswith("and more")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param("$ whoami\nann\n/data/ann/x", "$ whoami\nuser\n/data/user/x", id="whoami"),
        pytest.param("USER=ann\n/data/ann/x", "USER=ann\n/data/user/x", id="a variable"),
        pytest.param("HOME=/srv/homes/ann\n/data/ann", "HOME=/srv/homes/user\n/data/user", id="the home directory"),
        pytest.param("ann@lab:~$ ls /data/ann\nlab.local", "user@host:~$ ls /data/user\nhost.local", id="a prompt"),
        pytest.param("USER=an\n/data/an/x", "USER=an\n/data/an/x", id="too short: a part of words"),
        pytest.param("USER=root\n/data/root/x", "USER=root\n/data/root/x", id="a usual name"),
        pytest.param("/data/ann/x", "/data/ann/x", id="not told"),
    ],
)
def test_users_named_in_a_pasted_text_are_masked_in_its_paths(text: str, masked: str) -> None:
    assert mask_pasted(text) == masked


@pytest.mark.parametrize(("host", "shown"), [("lab", "host"), ("la", "la")])
def test_a_host_of_a_short_name_is_not_looked_for(host: str, shown: str) -> None:
    assert mask(f"on {host}: NVRM", ProbeContext(environ={}, directory=Path(), host_name=host)) == f"on {shown}: NVRM"


@pytest.mark.parametrize(("home", "masked"), [("/x", "~/a"), ("/", "/x/a"), ("", "/x/a")])
def test_the_shortest_home_directory(home: str, masked: str) -> None:
    assert mask("/x/a", ProbeContext(environ={}, directory=Path(), home=home)) == masked


@pytest.mark.parametrize("pasted", [False, True])
def test_a_document_is_looked_through_once_however_deep_it_is(pasted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level, or each record with a secret, would be looked through again: 5 MB took 20 seconds."""
    document: object = {"token": "abc1234", "text": "a\n-\nb", "password": ["x y", 3, None, "swordfish1"]}
    for _ in range(100):
        document = {"a": [document, {"token": "abc1234"}]}
    name = "mask_pasted" if pasted else "mask_secrets"
    mask = Mock(side_effect=getattr(privacy, name))
    monkeypatch.setattr(privacy, name, mask)
    masked = privacy.mask_document(document, pasted=pasted)
    assert mask.call_count == 1
    for _ in range(100):
        assert masked["a"][1] == {"token": "***"}
        masked = masked["a"][0]
    assert masked == {"token": "***", "text": "a\n-\nb", "password": ["x y", 3, None, "***"]}


def test_a_key_without_an_end_hides_its_own_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = "-----BEGIN RSA PRIVATE KEY-----\nMIIE"
    document = {"a": begin, "b": "driver 550.54", "c": "--token", "d": "GeForce RTX 4090", "e": "password:"}
    mask = Mock(side_effect=mask_secrets)
    monkeypatch.setattr(privacy, "mask_secrets", mask)
    assert privacy.mask_document(document) == {**document, "a": "***"}
    assert mask.call_count == 1
