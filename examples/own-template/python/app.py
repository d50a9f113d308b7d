"""An execution of one's own: how many crates the harvest of each tree fills, as a ConfigMap."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.template import (
    Failure,
    InputStep_Field,
    Output_Document,
    Rendered,
    Request,
)
from wit_world.imports import files

KILOGRAMS = 12


def failure(message: str, reads=()) -> Err:
    paths = [[InputStep_Field(name) for name in path] for path in reads]
    return Err(Failure(message=message, file=None, line=None, column=None, snippet=None, reads=paths))


class Template(exports.Template):
    def render(self, of: Request) -> Rendered:
        try:
            data = {"season": files.read("season.txt").decode().strip()}
        except Err as error:
            raise failure(error.value)
        try:
            for tree in json.loads(of.inputs)["imports"]["trees"]:
                data[tree["name"]] = f"{-(-tree['kilograms'] // KILOGRAMS)} crates"
        except (KeyError, TypeError):
            # The host shows what is there, by its type and never by its value.
            raise failure("the imports have another form than this component reads", [("imports", "trees")])
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
