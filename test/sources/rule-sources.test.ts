import { AdsServer, SnapshotCache } from '../support/servers/ads-server';
import { ruleResource, simpleResource } from '../support/data/rule-resources';
import { rules } from '../support/data/rule-tree';
import { domainConfig } from '../support/data/rules';
import { xdsSource } from '../support/data/xds-rules';
import { until } from '../support/waiting/until';
import { ruleFileSource } from '../../src/sources/rule-files/rule-file-source';
import { Files, WatchedRules, fileOptions } from './rule-files/watched-rules';
import { type RuleSourceRig, describeRuleSource } from './rule-source-contract';

/** Rule files that `write` brings to the path of the root. */
function ruleFiles(watchRoot: boolean, write: (files: Files, texts: ReadonlyMap<string, string>) => void) {
  const files = new Files();
  function publish(texts: ReadonlyMap<string, string>) {
    write(files, texts);
    return Promise.resolve();
  }
  return Promise.resolve<RuleSourceRig>({
    source: ruleFileSource(fileOptions({ root: files.at('current'), watchRoot })),
    publish: (limits) =>
      publish(new Map(Object.entries(limits).map(([name, limit]) => [`${name}.yaml`, rules(name, limit)]))),
    publishInvalid: () => publish(new Map([['shop.yaml', 'domain: shop\ndescriptors: [{key: ""}]\n']])),
    async settled() {
      using other = new WatchedRules({ root: files.at('current') });
      await other.next();
      await other.rest();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(files[Symbol.dispose]()),
  });
}

/** Folders of files, between which a link is switched. */
function switchedFolders() {
  const folders = new Map<string, string>();
  return ruleFiles(true, (files, texts) => {
    const contents = JSON.stringify([...texts]);
    const folder = folders.get(contents) ?? `rules-${folders.size}`;
    folders.set(contents, folder);
    files.folder(`${folder}/config`);
    for (const [name, text] of texts) files.write(`${folder}/config/${name}`, text);
    files.switchLink('current', folder);
  });
}

/** Files in one folder, each of which is written or removed. */
function filesInPlace() {
  let present: ReadonlyMap<string, string> = new Map();
  return ruleFiles(false, (files, texts) => {
    files.folder('current/config');
    // No intermediate state may be seen: at once, and new files first, because a folder without them would be valid
    // too.
    for (const [name, text] of texts) {
      if (present.get(name) !== text) files.replace(`current/config/${name}`, text);
    }
    for (const name of present.keys()) if (!texts.has(name)) files.remove(`current/config/${name}`);
    present = texts;
  });
}

/** A management server that gives each change a new version. */
async function managementServer(): Promise<RuleSourceRig> {
  const cache = new SnapshotCache(true);
  const server = await AdsServer.start({ cache });
  let version = 0;
  let published = '';
  function publish(key: string, resources: Parameters<SnapshotCache['publish']>[1]) {
    if (key !== published) version += 1;
    published = key;
    cache.publish(String(version), resources);
    return Promise.resolve();
  }
  return {
    source: xdsSource({ target: server.address }),
    publish: (limits) =>
      publish(
        JSON.stringify(limits),
        Object.entries(limits).map(([name, limit]) => simpleResource(name, limit)),
      ),
    publishInvalid: () => publish('invalid', [ruleResource('shop', domainConfig('shop', { key: '' }))]),
    settled: () =>
      until('it has answered', () => server.requests.at(-1)?.versionInfo === String(version)).then(() => {}),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

describeRuleSource('files behind a switched link', switchedFolders);
describeRuleSource('files that change in place', filesInPlace);
describeRuleSource('a management server', managementServer);
