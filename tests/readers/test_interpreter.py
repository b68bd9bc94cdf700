"""The interpreter that a report shows, written so that it can be pasted."""

import pytest

from gpudoctor.readers.interpreter import read
from gpudoctor.readers.text import clean_text


def interpreter(text: str) -> str | None:
    python = read(clean_text(text, "report.txt")).get("python")
    return None if python is None else python.executable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("ComfyUI portable, on an RTX 4060", r".\python_embeded\python.exe", id="told: ComfyUI portable"),
        pytest.param("ComfyUI in a venv, a portable hard disk", None, id="something else is portable"),
        pytest.param(
            'File "/home/ann/conda/envs/ml/lib/python3.10/site-packages/torch/cuda/__init__.py", line 2',
            "~/conda/envs/ml/bin/python",
            id="below a masked home",
        ),
        pytest.param(
            'File "/Users/ann/ml/.venv/lib/python3.12/site-packages/torch/__init__.py"',
            "~/ml/.venv/bin/python",
            id="Mac",
        ),
        pytest.param(
            r'File "C:\Users\ann\My Projects\sd\venv\lib\site-packages\torch\__init__.py", line 2',
            r"$HOME\My Projects\sd\venv\Scripts\python.exe",
            id="below a masked home of Windows",
        ),
        pytest.param(
            "(sd) C:\\Users\\ann>python a.py\nC:\\Users\\ann\\anaconda3\\envs\\sd\\lib\\site-packages\\torch",
            r"%USERPROFILE%\anaconda3\envs\sd\python.exe",
            id="in a Command Prompt",
        ),
        pytest.param(
            r"'C:\\Users\\ann\\Miniconda3\\envs\\tf\\lib\\site-packages\\a.py'",
            r"$HOME\Miniconda3\envs\tf\python.exe",
            id="repr",
        ),
        pytest.param(
            r"D:\ComfyUI_windows_portable>.\python_embeded\python.exe -s main.py",
            r".\python_embeded\python.exe",
            id="relative",
        ),
        pytest.param("$ venv/bin/python train.py", "venv/bin/python", id="relative venv"),
        pytest.param(
            r"PS C:\proj> .venv\Scripts\python.exe app.py", r".venv\Scripts\python.exe", id="relative on Windows"
        ),
        pytest.param(
            "PS C:\\p> .venv\\Scripts\\python.exe a.py\n" + r'File "C:\p\.venv\lib\site-packages\torch\a.py"',
            r"C:\p\.venv\Scripts\python.exe",
            id="the whole path if it is shown too",
        ),
        pytest.param(
            r"** Python executable: D:\My AI\python_embeded\python.exe",
            r"D:\My AI\python_embeded\python.exe",
            id="spaces",
        ),
        pytest.param(
            'File "D:/ai/kohya/venv/lib/site-packages/a.py"', r"D:\ai\kohya\venv\Scripts\python.exe", id="slashes"
        ),
        pytest.param(
            r'File "C:\Program Files\Python311\lib\site-packages\a.py"',
            r"C:\Program Files\Python311\python.exe",
            id="for all",
        ),
        pytest.param(
            'File "/srv/a/venv/lib/python3.10/site-packages/a.py"\nFile "/usr/lib/python3/dist-packages/b.py"',
            "/srv/a/venv/bin/python",
            id="an environment and the system",
        ),
        pytest.param(
            'File "/opt/homebrew/lib/python3.11/site-packages/a.py"', "/opt/homebrew/bin/python3", id="Homebrew"
        ),
        pytest.param(
            'File "/home/a/.local/lib/python3.10/site-packages/torch/a.py"', "python3", id="packages of the user"
        ),
        pytest.param(
            'venv/lib64/python3.12/site-packages/torch/__init__.py", line 9, in <module>',
            "venv/bin/python",
            id="lib64, and the traceback is cut",
        ),
        pytest.param(
            'File "/usr/lib64/python3.9/site-packages/torch/__init__.py"', "/usr/bin/python3", id="lib64 of the system"
        ),
        pytest.param(
            r"python311.dll -> C:\Users\ann\AI\python_embeded\python311.dll",
            r"$HOME\AI\python_embeded\python.exe",
            id="a DLL in the folder of an embedded Python",
        ),
        pytest.param(
            r"VCRUNTIME140.dll -> D:\conda\envs\ml\VCRUNTIME140.dll",
            r"D:\conda\envs\ml\python.exe",
            id="a DLL in the folder of a conda environment",
        ),
        pytest.param(
            'venv "C:\\AI\\webui\\venv\\Scripts\\Python.exe"\nC:\\AI\\webui\\venv\\lib\\site-packages\\torch\\x.py:2:',
            r"C:\AI\webui\venv\Scripts\python.exe",
            id="a web UI that names its environment",
        ),
        pytest.param("$ python3 train.py", "python3", id="typed"),
        pytest.param(
            'File "/c/envs/rapids/lib/python3.11/ctypes/__init__.py", line 376, in __init__',
            "/c/envs/rapids/bin/python",
            id="the standard library of an environment of conda",
        ),
        pytest.param(
            'File "/r/.cache/uv/builds-v0/.tmpXq2/lib/python3.11/site-packages/setuptools/x.py", line 3\n'
            "$ .venv/bin/python -V",
            ".venv/bin/python",
            id="not that of an isolated build",
        ),
        pytest.param(
            r'File "C:\Users\Marta Maria\sd\venv\Lib\site-packages\torch\cuda\__init__.py", line 310',
            r"$HOME\sd\venv\Scripts\python.exe",
            id="a user name of two words",
        ),
    ],
)
def test_the_interpreter_shown(text: str, expected: str) -> None:
    assert interpreter(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            'File "/a/venv/lib/python3.10/site-packages/a.py"\nFile "/b/venv/lib/python3.10/site-packages/b.py"',
            id="two",
        ),
        pytest.param('File "/mnt/c/Users/ann/p/venv/lib/python3.10/site-packages/a.py"', id="another's home, masked"),
        pytest.param(r'File "C:\tools\app\lib\site-packages\a.py"', id="a folder of Windows that may be either"),
        pytest.param("see https://github.com/python/cpython and /usr/lib/python3.10/threading.py", id="no environment"),
        pytest.param("python train.py", id="python"),
        pytest.param(r"VCRUNTIME140.dll -> C:\tools\app\VCRUNTIME140.dll", id="a DLL of any program"),
        pytest.param(r"VCRUNTIME140.dll -> C:\Windows\System32\VCRUNTIME140.dll", id="a DLL of Windows"),
    ],
)
def test_no_guess(text: str) -> None:
    assert interpreter(text) is None


@pytest.mark.parametrize(
    ("line", "executable"),
    [
        (r"C:\it's here\env\Scripts\python.exe -m pip install torch", r"C:\it's here\env\Scripts\python.exe"),
        (r"/srv/%PATH%^&calc/venv/bin/python x.py", None),
        (r"\\evil.example\share\env\Scripts\python.exe app.py", None),
        ("/home/me/my env/bin/python train.py", None),
        ("/home/me/'x;y'/venv/bin/python: No module named torch", None),
        ("it is in (`/opt/venv/bin/python`)", "/opt/venv/bin/python"),
        ("cd /srv/app && venv/bin/python run.py", "venv/bin/python"),
        ("the venv is at /opt/asr/venv, no torch in it", "/opt/asr/venv/bin/python"),
    ],
)
def test_a_path_is_whole_or_is_not_used(line: str, executable: str | None) -> None:
    python = read(clean_text(line, "report.txt")).get("python")
    assert (python.executable if python is not None else None) == executable


@pytest.mark.parametrize(
    ("text", "runner"),
    [
        ('$ pipenv run python -c "import torch"', "pipenv run"),
        ("$ micromamba run -n ml python train.py", "micromamba run -n ml"),
        ("$ pipenv run python a.py\n$ hatch run python a.py", None),
        ("$ pipenv run python a.py\n$ /v/bin/python a.py", None),
    ],
)
def test_what_starts_python(text: str, runner: str | None) -> None:
    python = read(clean_text(text, "report.txt")).get("python")
    assert (python.runner if python is not None else None) == runner


@pytest.mark.parametrize(
    "path", ["/host/user/v/bin/python", "/data/user/envs/seg/bin/python", "/rds/user/v/bin/python"]
)
def test_a_path_with_a_replaced_name_is_not_used(path: str) -> None:
    assert interpreter(f"$ {path} train.py") is None
