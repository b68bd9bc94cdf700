"""Words and manifests in a report which show that its programs run in a container."""

from collections.abc import Iterator

from gpudoctor.model import Container
from gpudoctor.readers.container_start import is_image
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.text import Text, regex

_IN = r"\b(?:in|inside|within|into|from|using|with|via|under|through)(?: of)?"
_ARTICLE = r"(?: an?| the| my| our| this| that| each| every| any| all)?(?: running| new| same| official| nvidia| gpu)?"
_KUBERNETES = regex(
    rf"(?i){_IN}{_ARTICLE} (?:k8s |kubernetes )?pods?\b"
    r"|\b(?:on|in|to|using|via|with) (?:a |an |my |our |the )?(?:\w{1,20} )?(?:kubernetes|k8s|k3s|k0s|microk8s"
    r"|minikube|openshift)\b|\bkubernetes(?: k0s| k3s|:| version)|\bruntimeClassName\b"
    r"|\b(?:k8s|kubernetes|k3s|microk8s) (?:pod|deployment|workload)s?\b|\bpods? (?:cannot|can't|do(?:es)? not|don't)"
    r"\b",
    "pod|kube|k8s|k3s|k0s|minikube|openshift|runtimeclassname",
)
_DESKTOP = regex(r"(?i)\b(?:use|using|have|run|running|with|in|on) docker desktop\b", "docker desktop")
_CLUSTER = regex(r"(?i)\b(k3s|rke2)\b", "k3s|rke2")
_PODMAN = regex(rf"(?i){_IN}{_ARTICLE} podman\b|\bpodman(?:-compose)? (?:run|exec|compose|build)\b", "podman")
_SINGULARITY = regex(
    rf"(?i){_IN}{_ARTICLE} singularity\b|\bapptainer\b|\bsingularity (?:version|containers?|images?|shell|exec|run)\b"
)
_DOCKER = regex(
    rf"(?i){_IN}{_ARTICLE} (?:docker|dev ?)?(?:[ -]?containers?\b(?! (?:toolkit|runtime|images? (?:size|registry))))"
    rf"|{_IN}{_ARTICLE} docker\b(?! (?:desktop|hub|engine|version))"
    r"|\b(?:my|our|the|this|a) (?:dev|docker|vs ?code)[ -]?containers?\b"
    r"|\bdocker (?:swarm|stack deploy|service create|executor)\b|\bdevcontainer\.json\b"
    r"|\b(?:custom|official|prebuilt|deep learning|inference|training) (?:docker )?containers?\b"
    r"|\bcontainer (?:logs?|inspect)\b|\bis an? (?:docker )?container\b"
    r"|\bdocker (?:exec|run|compose up|compose run|compose exec)\b|\bdocker-compose (?:up|run|exec)\b"
    r"|\b(?:enter|attach to|exec into|started?|running) (?:the |a |an |my )?(?:docker )?containers?\b(?! toolkit)"
    r"|(?:docker|容器)\s?(?:容器)?(?:内部|内|里面|里|中)|コンテナ(?:内|の中|で)"
    r"|\bcontainer: [\w./-]{1,80}/[\w.-]{1,60}:\w|\(in the [^)]{0,40}\bcontainer\)"
    r"|\b(?:dev|nightly|latest|official|our|my|the) (?:\w{1,12} )?docker image\b"
)
# "ollama  | Listening on ..." and "ollama exited with code 1": docker compose prints the logs of its services so.
_COMPOSE_LOG = regex(r"(?m)^([a-z][\w.-]{1,60}?(?:[-_]\d{1,2})?) {1,8}\| (?!-)(?=.*\n\1 {1,8}\| )")
_COMPOSE_EXIT = regex(r"(?m)^([a-z][\w.-]{1,60}) exited with code \d{1,3}$")
_MANIFEST = regex(r"(?m)^[^\S\n]{0,40}kind: (?:Pod|Deployment|Job|StatefulSet|DaemonSet)\b")
_REQUEST = regex(r"\bnvidia\.com/(?:gpu|mig)[\w.-]{0,40}[\"']?: ?[\"']?[1-9]|\bruntimeClassName: ?[\"']?nvidia")
_MANIFEST_IMAGE = regex(r"(?m)^[^\S\n]{0,60}(?:- )?image: ?[\"']?(\S{1,200}?)[\"']?$")
_DEVCONTAINER = regex(
    r"\"runArgs\": ?\[[^\]]{0,400}\"--gpus|\"hostRequirements\": ?\{[^}]{0,80}\"gpu\": ?(?:true|\"opt|\{)"
)


def read(text: Text) -> Facts:
    """Return the engine that started the reported container, its cluster, and whether its manifest requests GPUs."""
    return joined(*_manifest(text), *_devcontainer(text), *_engine(text), *_cluster(text), *_desktop(text))


def _manifest(text: Text) -> Iterator[Facts]:
    """Yield the facts of a pod manifest; one without a GPU request is complete if it names its containers."""
    if "kind:" not in text.flat or "containers:" not in text.flat:
        return
    lines = "\n".join(text.lines)
    if not _MANIFEST.search(lines):
        return
    asked = _REQUEST.search(text.flat) is not None
    images = {match[1] for match in _MANIFEST_IMAGE.finditer(lines) if is_image(match[1])}
    whole = bool(images) and not any(line.strip() in ("...", "…") for line in text.lines)
    yield {
        "container": Container(
            engine="kubernetes",
            image=images.pop() if len(images) == 1 else None,
            gpus_requested=True if asked else False if whole else None,
        )
    }


def _devcontainer(text: Text) -> Iterator[Facts]:
    if _DEVCONTAINER.search(text.flat):
        yield {"container": Container(engine="docker", gpus_requested=True)}


def _engine(text: Text) -> Iterator[Facts]:
    engines = (("kubernetes", _KUBERNETES), ("podman", _PODMAN), ("singularity", _SINGULARITY), ("docker", _DOCKER))
    engine = next((name for name, words in engines if words.search(text.flat)), None)
    engine = engine or ("docker" if _is_compose_log(text) else None)
    if engine is not None:
        yield {"container": Container(engine=engine)}


def _cluster(text: Text) -> Iterator[Facts]:
    named = {match[1].lower() for match in _CLUSTER.finditer(text.flat)}
    if len(named) == 1:
        yield {"container": Container(cluster=named.pop())}


def _desktop(text: Text) -> Iterator[Facts]:
    if _DESKTOP.search(text.flat):
        yield {"container": Container(docker_desktop=True)}


def _is_compose_log(text: Text) -> bool:
    """Return whether docker compose printed it: the service's name precedes each line and the exit message."""
    lines = "\n".join(text.lines)
    services = {match[1] for match in _COMPOSE_LOG.finditer(lines)}
    return any(match[1] in services for match in _COMPOSE_EXIT.finditer(lines))
