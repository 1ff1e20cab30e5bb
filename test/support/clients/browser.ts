import { execFileSync } from 'node:child_process';
import { type Browser, type BrowserContextOptions, type Page, chromium } from 'playwright-core';

/** A Chromium without a window, and what went wrong in its pages. Each page has a session of its own. */
export class TestBrowser implements AsyncDisposable {
  /** What was written to the console of pages as an error, and what was thrown. */
  readonly errors: string[] = [];
  /** The addresses that pages have requested. */
  readonly requested = new Set<string>();
  readonly #browser: Browser;

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  static async start(): Promise<TestBrowser> {
    const executablePath = execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim();
    // Containers may have little shared memory.
    return new TestBrowser(await chromium.launch({ executablePath, args: ['--disable-dev-shm-usage'] }));
  }

  async open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await this.#browser.newContext(options);
    const page = await context.newPage();
    page.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(message.text());
    });
    page.on('pageerror', (error) => this.errors.push(String(error)));
    page.on('dialog', (dialog) => this.errors.push(`a dialog: ${dialog.message()}`));
    page.on('request', (request) => this.requested.add(request.url()));
    await page.goto(url);
    return page;
  }

  /** Closes all pages, and forgets what went wrong in them. */
  async closePages(): Promise<void> {
    await Promise.all(this.#browser.contexts().map((context) => context.close()));
    this.errors.splice(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }
}
