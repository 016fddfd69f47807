export { composePage, type Page, type PageParts } from "./compose.ts";
