// Steps as data with the TypeScript SDK, 2.x or 1.x, whichever is installed here:
// node steps_ts.mjs {server}, also a URL.
const { steps, grant_type, issuer, ...known } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
const [command, ...args] = process.argv.slice(2);
const sdk = await import("@modelcontextprotocol/client").then(sdk2, sdk1);

async function sdk2(main) {
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  return { ...main, StdioClientTransport, options: { versionNegotiation: { mode: "auto" } } };
}

async function sdk1() {
  const home = "@modelcontextprotocol/sdk";
  const parts = [
    "client/index.js", "client/stdio.js", "client/streamableHttp.js", "client/auth-extensions.js",
    "types.js",
  ];
  const [main, stdio, http, auth, types] = await Promise.all(
    parts.map((one) => import(`${home}/${one}`)),
  );
  const schemas = {
    "roots/list": types.ListRootsRequestSchema,
    "sampling/createMessage": types.CreateMessageRequestSchema,
    "elicitation/create": types.ElicitRequestSchema,
  };
  return { ...main, ...stdio, ...http, ...auth, schemas, options: {} };
}

const can = { roots: { listChanged: true }, sampling: {}, elicitation: {} };
const identity = { name: "steps-ts", version: "1" };
const client = new sdk.Client(identity, { capabilities: can, ...sdk.options });
const answer = (method, handler) =>
  client.setRequestHandler(sdk.schemas ? sdk.schemas[method] : method, handler);
answer("roots/list", () => ({ roots: [{ uri: "file:///work" }] }));
answer("sampling/createMessage", () => ({
  role: "assistant", content: { type: "text", text: "something" }, model: "none",
}));
answer("elicitation/create", (request) => {
  const fields = Object.entries(request.params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(fields.map(([k, v]) => [k, v.default])) };
});

// Keeps tokens in memory, and follows redirects in place of a browser.
const memory = {};
// A client that an issuer knows already; STEPS_ISSUER binds it to that.
const { client_id, client_secret, private_key_pem, signing_algorithm } = known;
if (client_id) memory.client = { client_id, client_secret };
if (client_id && process.env.STEPS_ISSUER) memory.client.issuer = issuer;
const machine = grant_type === "client_credentials";
const signing = { clientId: client_id, privateKey: private_key_pem, algorithm: signing_algorithm };
const authProvider = private_key_pem ? new sdk.PrivateKeyJwtProvider(signing) : {
  redirectUrl: machine ? undefined : "http://localhost:3000/back",
  clientMetadata: { client_name: "steps", redirect_uris: ["http://localhost:3000/back"] },
  ...(machine && { prepareTokenRequest: () => new URLSearchParams({ grant_type }) }),
  state: () => (memory.state = crypto.randomUUID()),
  clientInformation: () => memory.client,
  saveClientInformation: (client) => { memory.client = client; },
  tokens: () => memory.tokens,
  saveTokens: (tokens) => { memory.tokens = tokens; },
  saveCodeVerifier: (verifier) => { memory.verifier = verifier; },
  codeVerifier: () => memory.verifier,
  redirectToAuthorization: async (url) => {
    const answer = await fetch(url, { redirect: "manual" });
    memory.back = new URL(answer.headers.get("location")).searchParams;
  },
};
const connection = () =>
  command.startsWith("http")
    ? new sdk.StreamableHTTPClientTransport(new URL(command), { authProvider })
    : new sdk.StdioClientTransport({ command, args, env: process.env });
let transport = connection();
const finished = async (attempt) => {
  try {
    return await attempt();
  } catch (error) {
    const back = memory.back;
    delete memory.back;
    if (!back || back.get("state") !== memory.state) throw error;
    await transport.finishAuth(sdk.schemas ? back.get("code") : back);
    return finished(attempt);
  }
};
await finished(async () => {
  transport = connection();
  await client.connect(transport);
});
const listed = new Set();
let texts = [];
const lists = {
  tools: "listTools", resources: "listResources", prompts: "listPrompts",
  templates: "listResourceTemplates",
};
const list = async (what) => {
  let cursor;
  do {
    const page = await finished(() => client[lists[what]](cursor === undefined ? {} : { cursor }));
    page.tools?.forEach((tool) => listed.add(tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
};
const call = (name, args, options) => {
  const asked = { name, arguments: args };
  return finished(() =>
    sdk.schemas ? client.callTool(asked, undefined, options) : client.callTool(asked, options),
  );
};
// Takes a step that is no call; passes over one that is unknown.
const other = async (one) => {
  if (one.list) await list(one.list);
  if (one.read) await finished(() => client.readResource({ uri: one.read }));
  if (one.prompt) {
    const asked = { name: one.prompt, ...(one.arguments && { arguments: one.arguments }) };
    await finished(() => client.getPrompt(asked));
  }
  if (one.complete) {
    const ref = { type: "ref/prompt", name: one.complete };
    const argument = { name: one.argument, value: one.value };
    await finished(() => client.complete({ ref, argument }));
  }
  if (one.level) await finished(() => client.setLoggingLevel(one.level));
  if (one.subscribe && sdk.schemas) await client.subscribeResource({ uri: one.subscribe });
  if (one.unsubscribe && sdk.schemas) await client.unsubscribeResource({ uri: one.unsubscribe });
  if (one.hand_on) {
    const { tools } = await finished(() => client.listTools());
    const schema = tools.find((tool) => tool.name === one.hand_on).inputSchema;
    await call(one.to, { schema }, {});
  }
  if (one.wait) await new Promise((done) => setTimeout(done, one.wait * 1000));
  if (one.together) {
    const calls = one.together.map((each) => call(each.call, { a: each.a, b: each.b }, {}));
    texts = (await Promise.all(calls)).map((result) => result.content[0].text);
  }
};
for (const one of steps) {
  if (!one.call) {
    await other(one).catch((error) => {
      if (!one.fails) throw error;
    });
    continue;
  }
  if (one.task) continue; // it has no tasks
  for (const name of one.call === "*" ? listed : [one.call]) {
    const options = one.progress ? { onprogress: () => {} } : {};
    if (one.cancel) options.signal = AbortSignal.timeout(one.cancel * 1000);
    const args = one.results ? { results: texts } : one.arguments ?? { a: one.a, b: one.b };
    try {
      await call(name, args, options);
    } catch (error) {
      if (!one.cancel && !one.fails) throw error;
    }
  }
}
await transport.terminateSession?.();
await client.close();
