// Elements of the page. Whatever is shown is made here, as text: nothing is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

// Line ends and tabs are left; what else would turn text around or be invisible is spelled.
const COMMANDS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu;

/** Text with every character that would act instead of being seen spelled as its number. */
export function readable(text) {
  return String(text).replace(COMMANDS, (each) => `\\u${each.codePointAt(0).toString(16).padStart(4, "0")}`);
}

/** An element of HTML: attributes, listeners where a value is a function, and children; text is made readable. */
export function el(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

/** The same of SVG. */
export function svg(name, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, name), attributes, children);
}

/** Puts children into an element in the place of those that it has. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(isShown).map(asNode));
  return element;
}

/** An id, and a button that copies it as it is. */
export function idOf(text) {
  const copy = async ({ currentTarget: button }) => {
    await navigator.clipboard.writeText(text);
    fill(button, "Copied");
  };
  return [
    el("code", { class: "id" }, text),
    el("button", { type: "button", class: "copy", "aria-label": `Copy ${text}`, click: copy }, "Copy"),
  ];
}

function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, value);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, readable(value));
    }
  }
  element.append(...children.flat(Infinity).filter(isShown).map(asNode));
  return element;
}

function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(readable(child));
}
