"""An execution of one's own: how many crates the harvest of each tree fills, as a ConfigMap."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.template import Failure, Output_Document, Rendered, Request
from wit_world.imports import files

KILOGRAMS = 12


def failure(message: str) -> Err:
    return Err(Failure(message=message, file=None, line=None, column=None, snippet=None))


class Template(exports.Template):
    def render(self, of: Request) -> Rendered:
        trees = json.loads(of.inputs)["imports"]["trees"]
        try:
            data = {"season": files.read("season.txt").decode().strip()}
        except Err as error:
            raise failure(error.value)
        for tree in trees:
            data[tree["name"]] = f"{-(-tree['kilograms'] // KILOGRAMS)} crates"
        document = json.dumps({"deployItems": [item(data)]})
        return Rendered(output=Output_Document(document), state=None, warnings=[])


def item(data: dict) -> dict:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "harvest", "namespace": "default"},
        "data": data,
    }
    return {
        "name": "harvest",
        "type": "landscaper.gardener.cloud/kubernetes-manifest",
        "target": {"import": "cluster"},
        "config": {
            "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
            "kind": "ProviderConfiguration",
            "manifests": [{"manifest": manifest}],
        },
    }
