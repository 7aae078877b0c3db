// A minimal server on the TypeScript SDK 2.x: one tool, one resource, one prompt.
// Usage: node typescript2.mjs [PORT] (stdio, or HTTP at /mcp of that port)
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { completable, createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
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
      inputSchema: z.object({ text: z.string() }),
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
    { description: "Greet a person.", argsSchema: z.object({ name: completable(z.string(), () => ["Ada"]) }) },
    ({ name }) => ({
      messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}.` } }],
    }),
  );

  return server;
}

const port = process.argv[2];
const handler = createMcpHandler(minimal);

async function handle(incoming, outgoing) {
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  const bodiless = ["GET", "HEAD"].includes(incoming.method);
  const request = new Request(`http://127.0.0.1:${port}${incoming.url}`, {
    method: incoming.method,
    headers: incoming.headers,
    body: bodiless ? undefined : Readable.toWeb(incoming),
    duplex: "half",
    signal: gone.signal,
  });
  const response = await handler.fetch(request);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  for await (const chunk of response.body ?? []) outgoing.write(chunk);
  outgoing.end();
}

if (port) createServer(handle).listen(Number(port), "127.0.0.1");
else serveStdio(minimal);
