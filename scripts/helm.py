"""Renders a Helm chart with the library of Helm itself, in the Python package helm-python-sdk.

Arguments: the folder of that package, the folder of the chart, and a file for the packed chart, if it is to be packed.
Standard input: a JSON list of values, each the text of a YAML file. Standard output: a JSON list of as many results, each either
{"manifests": {template: text}} for a release named weir in a namespace of the same name, or {"complaint": text}.
"""

import json
import sys

library, folder, *packed = sys.argv[1:]
sys.path.insert(0, library)

import helm_python as helm  # noqa: E402


def render(chart, text):
    try:
        values = helm.values_from_yaml(text)
        chart.validate_schema(values)
        manifests = chart.render(values, name="weir", namespace="weir")
        report = helm.lint(folder, values, strict=True, kube_version="v1.34.0")
    except helm.HelmError as error:
        return {"complaint": str(error)}
    # Of lower severity is only that the chart has no icon.
    found = report["errors"] + [message["error"] for message in report["messages"] if message["severity"] > 1]
    return {"complaint": "\n".join(found)} if found else {"manifests": manifests}


with helm.Chart.load(folder) as chart:
    json.dump([render(chart, text) for text in json.load(sys.stdin)], sys.stdout)
    for destination in packed:
        chart.save(destination)
