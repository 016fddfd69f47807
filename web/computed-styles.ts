let isAllowed = false;

/**
 * Lets the terminal set the styles that it computes although the page's policy forbids inline styles: they go through
 * the CSS object model, which the policy allows, instead of markup.
 */
export function allowComputedStyles(): void {
  if (isAllowed) return;
  isAllowed = true;
  const createElement = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) =>
    // The policy refuses every style element, an empty one too.
    name === "style"
      ? backedBySheet(createElement("span"))
      : createElement(name, options)) as typeof document.createElement; // reason: the same overloads
  const { setAttribute } = Element.prototype;
  Element.prototype.setAttribute = function (this: Element, name: string, value: string): void {
    if (name === "style" && this instanceof HTMLElement) this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}

/** Makes an element behave like a style element: its text becomes a style sheet of the document. */
function backedBySheet(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  element.hidden = true;
  const set = (css: string): void => {
    sheet.replaceSync(css);
  };
  Object.defineProperty(element, "textContent", { get: () => "", set });
  Object.defineProperty(element, "sheet", { value: sheet });
  const remove = element.remove.bind(element);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    remove();
  };
  return element;
}
