// Runs in a Node.js server under test before its own code: notes which variables it asks for.
// It is copied into the server's home. What Node.js itself asks for is left out. A name that is
// set counts after a copy of the whole environment only if it was asked for by `in`.
"use strict";
const { appendFileSync } = require("fs");
const { basename, join } = require("path");

const LAUNCHERS = /^(npm|npx|yarn|pnpm|pnpx|corepack)(-cli)?(\.c?js)?$/;
const COPIED = "*";
const known = new Set();

function note(text) {
  if (known.has(text)) return;
  known.add(text);
  try {
    appendFileSync(join(__dirname, "reads"), text + "\n");
  } catch {
    // the server must run all the same
  }
}

function ofNode() {
  const limit = Error.stackTraceLimit;
  try {
    Error.stackTraceLimit = 8;
    const lines = String(new Error().stack).split("\n").slice(1);
    const caller = lines.find((line) => !line.includes(__filename)) || "";
    return /[( ]node:/.test(caller);
  } catch {
    return false;
  } finally {
    Error.stackTraceLimit = limit;
  }
}

function asked(name, isCopy) {
  if (typeof name !== "string" || isCopy || known.has("=" + name) || ofNode()) return;
  note("=" + name);
}

if (!LAUNCHERS.test(basename(process.argv[1] || ""))) {
  note("Node.js");
  const env = process.env;
  process.env = new Proxy(env, {
    get(target, name) {
      asked(name, known.has(COPIED) && name in target);
      return target[name];
    },
    has(target, name) {
      asked(name, false);
      return name in target;
    },
    ownKeys(target) {
      if (!known.has(COPIED) && !ofNode()) note(COPIED);
      return Reflect.ownKeys(target);
    },
  });
  require("module").syncBuiltinESMExports();
}
