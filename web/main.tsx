import { render } from "preact";
import "@xterm/xterm/css/xterm.css";
import "uplot/dist/uPlot.min.css";
import "./styles.css";
import { href, route, startRouter } from "./router.ts";
import { signIn, signOut, startSession } from "./session.ts";
import { SignIn } from "./sign-in.tsx";
import { hello, may, start, state, troubled } from "./store.ts";
import { nextTheme, startTheme, theme } from "./theme.ts";
import { Events } from "./views/events.tsx";
import { Images } from "./views/images.tsx";
import { Machine } from "./views/machine.tsx";
import { Overview } from "./views/overview.tsx";
import { PodView } from "./views/pod.tsx";
import { Pods } from "./views/pods.tsx";
import { Settings } from "./views/settings.tsx";

const VIEWS = [
  { key: "", title: "Node", section: undefined, icon: "M4 17l5-6 4 3 7-9" },
  { key: "pods", title: "Pods", section: "pods", icon: "M4 5h16v5H4zM4 14h16v5H4z" },
  { key: "events", title: "Events", section: "pods", icon: "M5 6h14M5 12h14M5 18h9" },
  { key: "images", title: "Images", section: "images", icon: "M12 3l8 5v8l-8 5-8-5V8zM4 8l8 5 8-5M12 13v8" },
  {
    key: "machine",
    title: "Machine",
    section: "machine",
    icon: "M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4",
  },
  { key: "settings", title: "Config", section: "configuration", icon: "M4 7h10M18 7h2M4 17h2M10 17h10M14 4v6M8 14v6" },
] as const;

const STATES = {
  connecting: "connecting",
  live: "live",
  lost: "connection lost",
  paused: "paused",
  refused: "refused",
};
const THEMES = { auto: "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };
const THEME_ICONS = { auto: "◐", light: "☀", dark: "☾" };

function App() {
  const isSignedOut = signIn.value !== undefined;
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        Skip to content
      </a>
      <Header />
      {isSignedOut ? (
        <SignIn />
      ) : (
        <>
          <Navigation />
          <main id="content" tabIndex={-1}>
            {hello.value === undefined ? <Waiting /> : <View />}
          </main>
        </>
      )}
    </>
  );
}

/** The address names the view, so the link must not change it. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Header() {
  const { kind, message } = state.value;
  return (
    <header>
      <strong class="brand">kubelet</strong>
      <span class="muted version">{hello.value?.version}</span>
      <span class={`connection ${kind}`} role="status" title={message}>
        {signIn.value === undefined ? STATES[kind] : "signed out"}
      </span>
      <button
        type="button"
        class="icon"
        onClick={nextTheme}
        aria-label={THEMES[theme.value]}
        title={THEMES[theme.value]}
      >
        <span aria-hidden="true">{THEME_ICONS[theme.value]}</span>
      </button>
      {signIn.value === undefined && (
        <button type="button" class="quiet" onClick={() => void signOut()}>
          Sign out
        </button>
      )}
    </header>
  );
}

function Navigation() {
  const [current = ""] = route.value;
  const bad = troubled.value.length;
  return (
    <nav class="main" aria-label="Views">
      {VIEWS.filter(({ section }) => section === undefined || may(section)).map(({ key, title, icon }) => (
        <a key={key} href={href(...(key === "" ? [] : [key]))} aria-current={current === key ? "page" : undefined}>
          <svg viewBox="0 0 24 24" aria-hidden="true">
            <path d={icon} />
          </svg>
          <span>{title}</span>
          {key === "pods" && bad > 0 && (
            <span class="count" aria-label={`${bad} need attention`}>
              {bad}
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}

function Waiting() {
  const { kind, message } = state.value;
  return (
    <p class="loading" role="status">
      {kind === "lost" || kind === "refused" ? `The agent does not answer: ${message}` : "Connecting …"}
    </p>
  );
}

function View() {
  const [view = "", second, tab = "", third] = route.value;
  switch (view) {
    case "pods":
      return second === undefined ? <Pods /> : <PodView uid={second} tab={tab} container={third} />;
    case "events":
      return <Events />;
    case "images":
      return <Images />;
    case "machine":
      return <Machine />;
    case "settings":
      return <Settings />;
    default:
      return <Overview />;
  }
}

startTheme();
startRouter();
const root = document.getElementById("page");
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
}
void startSession().finally(start);
