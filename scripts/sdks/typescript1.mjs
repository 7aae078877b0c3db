// A minimal server on the TypeScript SDK 1.x: one tool, one resource, one prompt.
// It serves HTTP on the port of its argument, if there is one.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

function minimal() {
  const server = new McpServer(
    { name: "minimal", version: "1.0.0" },
    { capabilities: { logging: {} } },
  );

  server.registerTool(
    "echo",
    {
      description: "Give the text back.",
      inputSchema: { text: z.string() },
      annotations: { readOnlyHint: true },
    },
    async ({ text }) => ({ content: [{ type: "text", text }] }),
  );

  server.registerResource(
    "today",
    "note://today",
    { description: "Return a note.", mimeType: "text/plain" },
    async (uri) => ({ contents: [{ uri: uri.href, text: "Nothing happened." }] }),
  );

  server.registerPrompt(
    "greet",
    { description: "Greet a person.", argsSchema: { name: completable(z.string(), () => ["Ada"]) } },
    ({ name }) => ({
      messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}.` } }],
    }),
  );

  return server;
}

const sessions = new Map();

async function handle(request, response) {
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (known) return known.handleRequest(request, response);
  if (request.headers["mcp-session-id"]) return response.writeHead(404).end();
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await minimal().connect(transport);
  return transport.handleRequest(request, response);
}

const port = process.argv[2];
if (port) createServer(handle).listen(Number(port), "127.0.0.1");
else await minimal().connect(new StdioServerTransport());
