/** Whether something has ended in so many milliseconds. */
export async function inTime(milliseconds: number, ended: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, milliseconds, false)));
  try {
    return await Promise.race([ended.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
