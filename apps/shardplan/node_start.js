// Before the program starts in node. The module's bytes are read here: from node 18 on emscripten 3.1's own code hands a
// path to fetch(), which takes addresses. The environment is node's, not the one that emscripten makes up.
Module['wasmBinary'] = require('fs').readFileSync(__dirname + '/shardplan.wasm');
Module['preRun'] = () => Object.assign(ENV, process.env);
