#!/usr/bin/env node
// Runs the Python program of the same version with uvx, or else with pipx, or else in its image.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { repository, version } = require("../package.json");

const wanted = `mcp-touchstone==${version}`;
const image = `ghcr.io/${repository.replace(/^github:/, "").toLowerCase()}:${version}`;
const user = `${process.getuid?.() ?? 10001}:${process.getgid?.() ?? 10001}`;
const ways = [
  ["uvx", wanted],
  ["pipx", "run", wanted],
  ["docker", "run", "--rm", "-i", "--user", user, "-v", `${process.cwd()}:/work`, image],
];

function run() {
  const way = ways.shift();
  if (way === undefined) {
    console.error("mcp-touchstone: it needs uvx, pipx or docker on PATH; https://docs.astral.sh/uv/ has uvx");
    process.exit(2);
  }
  const [program, ...before] = way;
  const child = spawn(program, [...before, ...process.argv.slice(2)], { stdio: "inherit" });
  const end = () => child.kill("SIGTERM");
  process.once("SIGTERM", end);
  child.on("error", () => {
    process.off("SIGTERM", end);
    run();
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}

process.on("SIGINT", () => {}); // a terminal sends it to the program, too
run();
