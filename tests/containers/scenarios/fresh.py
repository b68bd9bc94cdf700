"""Dockerfiles of all kinds, of which a new image is fresh."""

from __future__ import annotations

from tests.containers.scenarios.acts import INSTALLED, START

FRESH = {
    "variables": START
    + 'ARG V=1\nARG Q\nARG A="x y"\nENV W=${V} X="a b" Y=$V-z P="$PATH:/x" R=\\$HOME\nENV OLD form with spaces\n'
    "WORKDIR $W\nWORKDIR sub/\nRUN echo $V > /x\nCOPY train.py ${W}/\nCOPY run.sh .\n",
    "shells and commands": START
    + 'RUN echo a && \\\n    # comment\n    echo "b  c" \\\n && echo \'x\\ny\'\nRUN ["echo", "a b", "c"]\n'
    'SHELL ["/bin/sh", "-ec"]\nRUN echo $HOME | cat\nLABEL a="1" \\\n b=2\nUSER 1000\nEXPOSE 80\nVOLUME /data\n'
    'COPY run.sh .\nHEALTHCHECK NONE\nENTRYPOINT ["sleep", "10"]\nCMD sleep 5\n',
    "arguments that look like a command": START + 'ARG A="x /bin/sh -c y"\nRUN echo /bin/sh -c hi\nCOPY run.sh .\n',
    "everything into the root": "FROM BASE\nCOPY . /\n",
    "later commands": START
    + "COPY . .\nRUN echo more >> train.py && touch -t 200001010000 train.py && rm -r common/sub "
    "&& chmod 755 conf/a.yaml && mv conf/b.yaml conf/c.yaml "
    "&& echo made > common/made.py && touch -t 200001010000 common/made.py\n",
    "a copied folder is removed": START + "COPY common /x/common\nRUN rm -rf /x\n",
    "files that were there": START
    + "RUN mkdir common && echo 1 > common/old.py && touch -t 200001010000 common/old.py\nCOPY common ./common\n",
    "a stage that rewrites": "FROM BASE AS one\nWORKDIR /s\nCOPY . .\n"
    "RUN echo 2 > common/util.py && touch -t 200001010000 common/util.py && rm train.py\n"
    "FROM BASE\nCOPY --from=one /s /app\n",
    "links in the image": START + "RUN mkdir /real && ln -s /real /link\nCOPY common /link/c\nCOPY train.py /link\n",
    "a link to a file in the image": START + "RUN echo 1 > real && ln -s real train.py\nCOPY train.py train.py\n",
    "settings": START + 'LABEL a="b c" d=\'e f\' g=h\\ i\nLABEL old form\nMAINTAINER me <a@b>\nENV P=/x:$PATH Q="a b"\n'
    'EXPOSE 80 443/udp 9000-9002\nHEALTHCHECK --interval=5s --retries=2 CMD ["true", "x y"]\n'
    'HEALTHCHECK CMD curl -f http://x || exit 1\nSTOPSIGNAL SIGINT\nVOLUME ["/v", "/w"]\nVOLUME /a $Q/b\n'
    'USER $Q\nUSER 0:0\nENTRYPOINT echo $HOME\nCMD x "y z"\nCOPY run.sh .\n',
    "triggers of a stage": "FROM BASE AS one\nWORKDIR /app\nONBUILD COPY common ./common\nFROM one\nCOPY train.py .\n",
    "copied again over others": START + "COPY . .\nCOPY run.sh train.py\nCOPY common ./conf\n",
    "packages installed from the copied source": START
    + f"COPY requirements.txt common ./\nCOPY common ./common\nRUN mkdir -p {INSTALLED} && cp common/* {INSTALLED} ; "
    f"echo 2 > {INSTALLED}/util.py\n",
}
"""Dockerfiles of which a new image is fresh, whatever they do."""
