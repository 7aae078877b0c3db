// A minimal server on the TypeScript SDK 2.x: one tool, one resource, one prompt.
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

serveStdio(() => {
  const server = new McpServer({ name: "minimal", version: "1.0.0" });

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
    { description: "Greet a person.", argsSchema: z.object({ name: z.string() }) },
    ({ name }) => ({
      messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}.` } }],
    }),
  );

  return server;
});
