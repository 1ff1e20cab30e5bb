import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Pixels of a row of a list. */
const ROW_HEIGHT = 40;
/** Rows above and below those that are visible. */
const MORE_ROWS = 6;
/** Elements are used again for other rows, which costs less than new ones; more are never visible. */
const ELEMENTS = 256;

interface ListProps {
  readonly label: string;
  readonly count: number;
  readonly render: (index: number) => VNode;
  /** The row that is chosen; -1: none. */
  readonly chosen: number;
  readonly onChoose: (index: number) => void;
}

/** A list of any length, of which only the visible rows exist. The arrow keys choose a row. */
export function LongList({ label, count, render, chosen, onChoose }: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const element = box.current!;
    function look(): void {
      setView({ top: element.scrollTop, height: element.clientHeight });
    }
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current!;
    const [top, bottom] = [chosen * ROW_HEIGHT, (chosen + 1) * ROW_HEIGHT];
    if (chosen < 0) return;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }, [chosen]);
  const page = Math.max(1, Math.floor(view.height / ROW_HEIGHT) - 1);
  const ends = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  const steps: Readonly<Record<string, number>> = { ...ends, PageDown: page, PageUp: -page };
  function onKeyDown(event: KeyboardEvent): void {
    const step = steps[event.key];
    if (step === undefined || count === 0) return;
    event.preventDefault();
    onChoose(Math.min(count - 1, Math.max(0, chosen + step)));
  }
  const first = Math.max(0, Math.floor(view.top / ROW_HEIGHT) - MORE_ROWS);
  const last = Math.min(count, Math.ceil((view.top + view.height) / ROW_HEIGHT) + MORE_ROWS, first + ELEMENTS);
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, place) => first + place);
  return (
    <div
      ref={box}
      class="list"
      role="listbox"
      aria-label={label}
      aria-activedescendant={chosen >= first && chosen < last ? `row-${chosen}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div role="presentation" style={{ height: `${count * ROW_HEIGHT}px` }}>
        {rows.map((index) => (
          <div
            key={index % ELEMENTS}
            id={`row-${index}`}
            class="row"
            role="option"
            aria-selected={index === chosen}
            aria-setsize={count}
            aria-posinset={index + 1}
            style={{ top: `${index * ROW_HEIGHT}px` }}
            onClick={() => onChoose(index)}
          >
            {render(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
