"""The files of launch/cluster are what Ray, AWS and KubeRay take, and the image has what it names. Nothing reaches for the network."""

import json
import re
import shlex
from pathlib import Path

import jsonschema
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

ROOT = Path(__file__).parents[3]
CLUSTER = ROOT / "launch" / "cluster"
LAUNCHER, KUBERAY = ["aws", "gcp"], ["raycluster", "rayjob"]


def _tree(name):
    return yaml.safe_load((CLUSTER / f"{name}.yaml").read_text())


def _launcher(tree):
    validate_config(prepare_config(tree))


def _crd(name, tree):
    schema = json.loads((Path(__file__).parent / "schemas" / f"{name}.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    # metadata is the API server's own, which the CRD leaves open
    validator.validate(tree | {"metadata": {}})


def _pods(tree):
    spec = tree["spec"].get("rayClusterSpec", tree["spec"])
    return spec, [spec["headGroupSpec"], *spec["workerGroupSpecs"]]


@pytest.mark.parametrize("name", LAUNCHER)
def test_rays_own_validator_takes_a_launcher_file(name):
    _launcher(_tree(name))


@pytest.mark.parametrize("name", LAUNCHER)
@pytest.mark.parametrize(
    "where", [(), ("provider", "security_group"), ("auth",), ("available_node_types", "gpu_spot")], ids="-".join
)
def test_rays_own_validator_refuses_a_misspelt_field(name, where):
    tree = _tree(name)
    at = tree
    for key in where:
        at = at.setdefault(key, {})
    at["max_wrokers"] = 1
    with pytest.raises(jsonschema.ValidationError, match="max_wrokers"):
        _launcher(tree)


def test_a_launcher_file_whose_head_is_no_node_type_is_refused():
    with pytest.raises(ValueError, match="head_node_type"):
        _launcher(_tree("aws") | {"head_node_type": "haed"})


def _run_instances(config):
    from botocore.loaders import Loader
    from botocore.model import ServiceModel
    from botocore.validate import ParamValidator

    shape = ServiceModel(Loader().load_service_model("ec2", "service-2")).operation_model("RunInstances").input_shape
    counts = {"MinCount": 1, "MaxCount": 1}  # which the launcher adds
    return ParamValidator().validate(config | counts, shape).generate_report()


def test_every_aws_node_is_a_request_that_ec2_knows():
    pytest.importorskip("botocore")
    for kind in _tree("aws")["available_node_types"].values():
        assert _run_instances(kind["node_config"]) == ""
    config = _tree("aws")["available_node_types"]["gpu_spot"]["node_config"]
    assert "MarketTpye" in _run_instances(config | {"InstanceMarketOptions": {"MarketTpye": "spot"}})


def test_ray_prepares_the_aws_cluster_in_an_account_that_has_the_two_roles(tmp_path, monkeypatch):
    boto3, moto = pytest.importorskip("boto3"), pytest.importorskip("moto")
    from ray.autoscaler._private.aws.config import bootstrap_aws

    monkeypatch.setenv("HOME", str(tmp_path))  # where the key pair is written
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    tree = _tree("aws")
    with moto.mock_aws():
        iam = boto3.client("iam")
        for role in ("manyseeds-head", "manyseeds-worker"):
            iam.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
            iam.create_instance_profile(InstanceProfileName=role)
            iam.add_role_to_instance_profile(InstanceProfileName=role, RoleName=role)
        made = bootstrap_aws(prepare_config(tree))
        assert len(iam.list_roles()["Roles"]) == 2  # Ray made none of its own, which would have every bucket of the account
    for name, kind in made["available_node_types"].items():
        assert kind["node_config"]["ImageId"] == tree["available_node_types"][name]["node_config"]["ImageId"]
        assert kind["node_config"]["SecurityGroupIds"]
    assert (tmp_path / ".ssh" / f"{made['available_node_types']['head']['node_config']['KeyName']}.pem").is_file()


def test_launcher_workers_are_spot_with_a_gpu_and_the_head_is_neither():
    aws, gcp = (_tree(name)["available_node_types"] for name in LAUNCHER)
    assert aws["gpu_spot"]["node_config"]["InstanceMarketOptions"] == {"MarketType": "spot"}
    assert {"provisioningModel": "SPOT"}.items() <= gcp["gpu_spot"]["node_config"]["scheduling"].items()
    assert "InstanceMarketOptions" not in aws["head"]["node_config"]
    assert "scheduling" not in gcp["head"]["node_config"]
    for types in (aws, gcp):
        assert types["gpu_spot"]["resources"]["GPU"] == 1
        assert types["gpu_spot"]["min_workers"] >= 1  # a study takes the GPUs that are there when it starts
        assert types["head"]["resources"] == {"CPU": 0}


@pytest.mark.parametrize("name", LAUNCHER)
def test_launcher_nodes_install_the_constraints_and_start_with_the_token(name):
    tree = _tree(name)
    for remote, local in tree["file_mounts"].items():
        assert remote.startswith("/home/ubuntu/")
        assert local == "~/.ray/auth_token" or (ROOT / local).is_file()
    assert any("-c constraints.txt -r requirements.txt" in command for command in tree["setup_commands"])
    for start in (tree["head_start_ray_commands"], tree["worker_start_ray_commands"]):
        assert all("RAY_AUTH_MODE=token" in command for command in start if "ray start" in command)
    text = " ".join(tree["head_start_ray_commands"])
    assert "0.0.0.0" not in text


@pytest.mark.parametrize("name", [*LAUNCHER, "Dockerfile"])
def test_the_packages_that_a_node_installs_are_those_of_pyproject(name, tmp_path):
    import subprocess
    import sys
    import tomllib

    text = (ROOT / "Dockerfile").read_text() if name == "Dockerfile" else "\n".join(_tree(name)["setup_commands"])
    (program,) = set(re.findall(r"python3? -c ('import tomllib.*?') >", text))
    words = [sys.executable, "-c", *shlex.split(program)]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]


def test_no_constraint_names_a_build_of_torch_without_cuda():
    (torch,) = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch==")]
    assert "+" not in torch


@pytest.mark.parametrize("name", KUBERAY)
def test_kuberays_schema_takes_a_manifest(name):
    _crd(name, _tree(name))


@pytest.mark.parametrize("name", KUBERAY)
@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree["spec"].update(backofLimit=3),
        lambda tree: _pods(tree)[0].update(rayversion="2.60.0"),
        lambda tree: _pods(tree)[1][1].update(minReplicas="four"),
        lambda tree: _pods(tree)[1][1]["template"]["spec"]["containers"][0].update(img="IMAGE"),
        lambda tree: _pods(tree)[1][1]["template"]["spec"]["tolerations"][0].update(efect="NoSchedule"),
        lambda tree: _pods(tree)[0]["authOptions"].update(mode="tokens"),
    ],
)
def test_kuberays_schema_refuses_what_is_misspelt(name, change):
    tree = _tree(name)
    change(tree)
    with pytest.raises(jsonschema.ValidationError):
        _crd(name, tree)


@pytest.mark.parametrize("name", KUBERAY)
def test_kuberay_pods_have_the_secret_a_gpu_and_a_spot_node(name):
    spec, (head, worker) = _pods(_tree(name))
    assert spec["authOptions"] == {"mode": "token"}
    assert head["rayStartParams"]["num-cpus"] == "0"
    for group in (head, worker):
        (container,) = group["template"]["spec"]["containers"]
        assert container["envFrom"] == [{"secretRef": {"name": "manyseeds-store"}}]
        assert "env" not in container
    assert worker["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert worker["template"]["spec"]["nodeSelector"] == {"cloud.google.com/gke-spot": "true"}


def test_a_manifest_runs_the_ray_that_the_constraints_name():
    (version,) = re.findall(r"^ray==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert {_pods(_tree(name))[0]["rayVersion"] for name in KUBERAY} == {version}


def test_the_job_of_kuberay_names_a_script_and_study_of_the_image():
    from launch.families import find_study

    spec = _tree("rayjob")["spec"]
    words = shlex.split(spec["entrypoint"])
    assert words[0] == "python"
    assert (ROOT / Path(words[1]).relative_to("/manyseeds")).is_file()
    (study,) = [word.removeprefix("study=") for word in words if word.startswith("study=")]
    assert Path(find_study("fflm", study)).is_file()
    assert spec["backoffLimit"] > 0
    assert spec["shutdownAfterJobFinishes"] is True


def _copied():
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [name for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE) for name in line.split()[:-1]]


def test_the_image_has_every_package_and_is_not_run_as_root():
    import tomllib

    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    copied = _copied()
    assert all((ROOT / name).exists() for name in copied)
    assert {name.removesuffix("*") for name in packages} <= set(copied)
    users = re.findall(r"^USER (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert users[-1] not in ("root", "0")


def test_the_build_context_is_what_the_image_copies():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    assert {line[1:] for line in lines if line.startswith("!")} == set(_copied())
