// A server on the TypeScript SDK 2.x as an application writes it, right or wrong.
// Usage: node typescript2.mjs PORT [WORD...] (HTTP at /mcp of that port; PORT 0 is stdio)
// sessions       session ids: a transport serves a session, and otherwise a request
// one-server     one server for all transports, in place of one for each
// one-transport  one transport for all clients
// json           answers are no streams of events
// limit          maxToolInputElements is 10000
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const [port, ...words] = process.argv.slice(2);

function counter() {
  const options = words.includes("limit") ? { maxToolInputElements: 10_000 } : undefined;
  const server = new McpServer({ name: "counter", version: "1.0.0" }, options);
  server.registerTool(
    "count",
    {
      description: "Count the items.",
      inputSchema: z.object({ items: z.array(z.string()) }),
      annotations: { readOnlyHint: true },
    },
    async ({ items }) => ({ content: [{ type: "text", text: `${items.length}` }] }),
  );
  server.registerTool(
    "echo",
    {
      description: "Give the text back.",
      inputSchema: z.object({ text: z.string() }),
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
  const transport = new NodeStreamableHTTPServerTransport({
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

if (Number(port)) createServer(handle).listen(Number(port), "127.0.0.1");
else await one.connect(new StdioServerTransport());
