// A minimal server on the TypeScript SDK 1.x: one tool, one resource, one prompt.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "minimal", version: "1.0.0" });

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
  { description: "Greet a person.", argsSchema: { name: z.string() } },
  ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}.` } }],
  }),
);

await server.connect(new StdioServerTransport());
