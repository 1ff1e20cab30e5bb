import type { ProblemDetails } from './problems/problem';

/** Bytes of a rule file: 300,000 rules fit. */
export const MAX_FILE_BYTES = 32 * 1024 * 1024;
/** Bytes of all rule files of a folder together. */
export const MAX_TOTAL_BYTES = 64 * 1024 * 1024;
/** Rule files of a folder and its subfolders. */
export const MAX_FILES = 10_000;
/** Subfolders of a rule folder. */
export const MAX_FOLDERS = 1_000;
/** Everything in a rule folder and its subfolders: files of any name, links, folders. */
export const MAX_ENTRIES = 50_000;

/** The problem of a file with more than {@link MAX_FILE_BYTES}. */
export function fileTooLarge(bytes: number): ProblemDetails {
  return {
    code: 'file-too-large',
    message: `error loading config file: the file has ${bytes} bytes, more than the limit of ${MAX_FILE_BYTES}`,
  };
}

/** Why a folder is too large, as the rest of a sentence about it. */
export const FOLDER_EXCESSES = {
  files: `has more than ${MAX_FILES} rule files`,
  folders: `has more than ${MAX_FOLDERS} subfolders`,
  entries: `has more than ${MAX_ENTRIES} files and folders`,
  bytes: `has rule files of more than ${MAX_TOTAL_BYTES} bytes in total`,
} as const;

export type FolderExcess = keyof typeof FOLDER_EXCESSES;

/** The problem of a folder that exceeds one of the limits. */
export function folderTooLarge(excess: FolderExcess): ProblemDetails {
  return { code: 'folder-too-large', message: `the folder ${FOLDER_EXCESSES[excess]}` };
}
