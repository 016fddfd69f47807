import { useState } from "preact/hooks";
import { Title } from "./parts.tsx";
import { keep, signIn } from "./session.ts";

/** What to do to see anything. */
export function SignIn() {
  const [token, setToken] = useState("");
  const { value } = signIn;
  if (value === undefined) return null;
  return (
    <main class="sign-in card" id="content">
      <Title>Sign in</Title>
      {value.how === "link" ? (
        <>
          <p>This page shows the node only to those who may control it. On the node, run</p>
          <pre>sudo kubelet open</pre>
          <p>and open the link that it prints. It works once, within five minutes.</p>
        </>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            keep(token.trim(), { forTab: true });
          }}
        >
          <p>Use a client certificate of the cluster, or a bearer token. It stays in this tab.</p>
          <label>
            Token{" "}
            <input
              type="password"
              autocomplete="off"
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
          </label>{" "}
          <button type="submit">Sign in</button>
        </form>
      )}
      <p class="muted" role="alert">
        {value.message}
      </p>
    </main>
  );
}
