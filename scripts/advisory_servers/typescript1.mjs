// A server on the TypeScript SDK 1.x as an application writes it, right or wrong.
// Usage: node typescript1.mjs PORT [WORD...] (HTTP at /mcp of that port; PORT 0 is stdio)
// The words are those of typescript2.mjs. With the variables ISSUER and AUDIENCE it accepts the tokens of
// that issuer, which it asks about each one; with the word audience, only those for AUDIENCE.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import express from "express";
import { z } from "zod";

const [port, ...words] = process.argv.slice(2);
const { ISSUER, AUDIENCE } = process.env;

function counter() {
  const options = words.includes("limit") ? { maxToolInputElements: 10_000 } : undefined;
  const server = new McpServer({ name: "counter", version: "1.0.0" }, options);
  server.registerTool(
    "count",
    {
      description: "Count the items.",
      inputSchema: { items: z.array(z.string()) },
      annotations: { readOnlyHint: true },
    },
    async ({ items }) => ({ content: [{ type: "text", text: `${items.length}` }] }),
  );
  server.registerTool(
    "echo",
    {
      description: "Give the text back.",
      inputSchema: { text: z.string() },
      annotations: { readOnlyHint: true },
    },
    async ({ text }) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { content: [{ type: "text", text }] };
    },
  );
  return server;
}

const transports = new Map();

async function connected(server) {
  const sessioned = {
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => transports.set(id, transport),
    onsessionclosed: (id) => transports.delete(id),
  };
  const transport = new StreamableHTTPServerTransport({
    enableJsonResponse: words.includes("json"),
    ...(words.includes("sessions") ? sessioned : { sessionIdGenerator: undefined }),
  });
  await server.connect(transport);
  return transport;
}

const one = counter();
const single = port && words.includes("one-transport") ? await connected(one) : undefined;

async function transportOf(request) {
  const id = request.headers["mcp-session-id"];
  if (single || id) return single ?? transports.get(id);
  return connected(words.includes("one-server") ? one : counter());
}

async function handle(request, response) {
  try {
    const transport = await transportOf(request);
    if (!transport) return response.writeHead(404).end();
    await transport.handleRequest(request, response);
  } catch (error) {
    console.error(error.message);
    if (!response.headersSent) response.writeHead(500);
    response.end();
  }
}

async function verifyAccessToken(token) {
  const body = new URLSearchParams({ token });
  const known = await (await fetch(`${ISSUER}/introspect`, { method: "POST", body })).json();
  if (!known.active) throw new InvalidTokenError("unknown");
  const { aud, exp, client_id = "client", scope = "" } = known;
  const named = [aud].flat().filter((one) => URL.canParse(one));
  const resource = named.includes(AUDIENCE) ? AUDIENCE : named[0];
  return {
    token,
    clientId: client_id,
    scopes: scope.split(" "),
    expiresAt: exp,
    resource: resource && new URL(resource),
  };
}

function guarded() {
  const expectedResource = words.includes("audience") ? new URL(AUDIENCE) : undefined;
  return express()
    .use(requireBearerAuth({ verifier: { verifyAccessToken }, expectedResource }))
    .use(handle);
}

if (Number(port)) createServer(ISSUER ? guarded() : handle).listen(Number(port), "127.0.0.1");
else await one.connect(new StdioServerTransport());
