// Makes a component of render.js: `node build.js [FILE [FOLDER_OF_WIT]]`.

import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { componentize } from '@bytecodealliance/componentize-js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const { component } = await componentize({
  sourcePath: here('render.js'),
  witPath: process.argv[3] ?? here('../../../wit/template'),
  worldName: 'templater',
  // The sandbox has none of these, and a component without them is smaller.
  disableFeatures: ['random', 'stdio', 'clocks', 'http', 'fetch-event'],
});
await writeFile(process.argv[2] ?? here('../blueprint/render.wasm'), component);
