// An execution of one's own: how many crates the harvest of each tree fills, as a ConfigMap.

import { read } from 'orangery:template/files@0.1.0';

const KILOGRAMS = 12;

export const template = {
  render(of) {
    const { trees } = JSON.parse(of.inputs).imports;
    if (!Array.isArray(trees)) {
      // The host shows what is there, by its type and never by its value.
      const reads = [['imports', 'trees'].map((val) => ({ tag: 'field', val }))];
      throw { message: 'the imports have another form than this component reads', reads };
    }
    const data = { season: season() };
    for (const { name, kilograms } of trees) {
      data[name] = `${Math.ceil(kilograms / KILOGRAMS)} crates`;
    }
    const document = JSON.stringify({ deployItems: [item(data)] });
    return { output: { tag: 'document', val: document }, warnings: [] };
  },
};

function season() {
  try {
    return new TextDecoder().decode(read('season.txt')).trim();
  } catch (error) {
    throw { message: error.payload ?? String(error), reads: [] };
  }
}

function item(data) {
  const manifest = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'harvest', namespace: 'default' },
    data,
  };
  return {
    name: 'harvest',
    type: 'landscaper.gardener.cloud/kubernetes-manifest',
    target: { import: 'cluster' },
    config: {
      apiVersion: 'manifest.deployer.landscaper.gardener.cloud/v1alpha2',
      kind: 'ProviderConfiguration',
      manifests: [{ manifest }],
    },
  };
}
