"""The cluster that deploy/kuberay.yaml asks Kubernetes for."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def test_the_cluster_has_the_pinned_release_of_ray_and_runs_as_nobody() -> None:
    cluster = pytest.importorskip("yaml").safe_load((ROOT / "deploy" / "kuberay.yaml").read_text())
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert cluster["spec"]["rayVersion"] == pins["ray"]
    assert cluster["spec"]["authOptions"] == {"mode": "token"}
    for group in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        mounted = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
