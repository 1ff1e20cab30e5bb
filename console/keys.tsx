import { useEffect, useRef } from 'preact/hooks';
import { RANGES } from './fleet-answer';
import { Dialog, Facts } from './parts';
import { PAGES, addressOf, replaceParameters, route } from './route';

const LETTERS = Object.values(PAGES).map(([title, key]) => `${key} ${title}`);
const KEYS = {
  '/': 'find a caller or a rule',
  'g and a letter': LETTERS.join(', '),
  '1 to 4': 'the number that is in the chart',
  'j k': 'the next or previous caller or rule',
  c: 'clear the counter of the caller',
  r: 'the next range of time',
  '?': 'this list',
};

/** Milliseconds in which a letter follows a `g`. */
const SEQUENCE = 1_500;

/** Keys of the whole page, unless something is being written or chosen. What a key does is a control of the page. */
export function useKeys(onHelp: () => void): void {
  const began = useRef(-Infinity);
  useEffect(() => {
    function onKeyDown(event: KeyboardEvent): void {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (target.closest('input, select, textarea, dialog') !== null || document.querySelector('dialog') !== null)
        return;
      const [page] = Object.entries(PAGES).find(([, [, key]]) => key === event.key) ?? [];
      if (event.timeStamp - began.current < SEQUENCE && page !== undefined) location.hash = addressOf(page);
      else if (event.key === '/') document.getElementById('find')!.focus();
      else if (event.key === '?') onHelp();
      else if (event.key === 'r') nextRange();
      else if (event.key === 'j' || event.key === 'k') step(event.key === 'j' ? 1 : -1);
      else if (/^[1-4c]$/.test(event.key)) document.querySelector<HTMLElement>(`[data-key="${event.key}"]`)?.click();
      else if (event.key !== 'g') return;
      began.current = event.key === 'g' ? event.timeStamp : -Infinity;
      event.preventDefault();
    }
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
}

/** Chooses the next row of the list of the page, or the previous one. */
function step(by: number): void {
  const list = document.querySelector<HTMLElement>('[role=listbox]');
  if (list !== null) {
    list.focus();
    list.dispatchEvent(new KeyboardEvent('keydown', { key: by > 0 ? 'ArrowDown' : 'ArrowUp' }));
    return;
  }
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const at = rows.findIndex((row) => row.ariaCurrent === 'true' || row === document.activeElement);
  const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  next?.focus();
  if (next?.closest('.pick') !== null) next?.click();
}

function nextRange(): void {
  const ranges = Object.keys(RANGES);
  const at = ranges.indexOf(route.value.parameters.get('range') ?? '');
  replaceParameters({ range: ranges[(at + 1) % ranges.length] });
}

export function KeysDialog({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <Facts facts={Object.entries(KEYS)} />
      <form method="dialog" class="actions">
        <button>Close</button>
      </form>
    </Dialog>
  );
}
