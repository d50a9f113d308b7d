//! The rules as data. Each is a list in CEL of what breaks it, and a sentence around that list.
//!
//! Names that stand twice are looked for in lists of up to 250 names of up to 63 letters: what it costs grows with the square
//! of the length, an API server ends an evaluation at a million units, and each tenth letter is one. A longer list is left to
//! the controllers rather than refused, and so are more dependencies than can be looked up.

/// The rules of one kind.
pub(super) struct KindRules {
    pub(super) plural: &'static str,
    /// Name and expression, each of which may name those before it. A part that a write leaves alone is empty.
    pub(super) variables: &'static [(&'static str, &'static str)],
    pub(super) rules: &'static [AdmissionRule],
}

pub(super) struct AdmissionRule {
    pub(super) name: &'static str,
    /// What breaks the rule, a list of texts.
    pub(super) breakers: &'static str,
    /// What stands before and after them: what is wrong, and how to mend it.
    pub(super) sentence: (&'static str, &'static str),
}

const fn rule(name: &'static str, breakers: &'static str, before: &'static str, after: &'static str) -> AdmissionRule {
    AdmissionRule { name, breakers, sentence: (before, after) }
}

/// Sorted by plural.
pub(super) const KINDS: &[KindRules] = &[
    KindRules {
        plural: "deployitems",
        variables: &[],
        rules: &[
            rule(
                "typeless",
                "object.spec.type == '' ? ['type'] : []",
                "spec.",
                ": is empty; name the type of the deployer that the item is for",
            ),
            rule(
                "retyped",
                "oldObject != null && oldObject.spec.type != object.spec.type ? [oldObject.spec.type] : []",
                "spec.type: never changes, and is ",
                "; delete the item and create one of the other type",
            ),
            rule(
                "aimless",
                "has(object.spec.target) && (object.spec.target.name == '' || !has(object.spec.target.namespace) || \
                 object.spec.target.namespace == '') && (oldObject == null || !has(oldObject.spec.target) || \
                 oldObject.spec.target != object.spec.target) ? ['target'] : []",
                "spec.",
                ": needs both name and namespace; add what is missing, or leave the target out",
            ),
        ],
    },
    KindRules {
        plural: "executions",
        variables: EXECUTION,
        rules: &[
            rule(
                "nameless",
                "variables.items.exists(i, i.name == '') ? ['name'] : []",
                "spec.deployItems: an item has an empty ",
                "; give every item a name of its own",
            ),
            rule(
                "repeated",
                "size(variables.doubles) == 0 ? [] : [variables.doubles[0]]",
                "spec.deployItems: several items are called ",
                "; give every item a name of its own",
            ),
            rule(
                "typeless",
                "variables.items.filter(i, i.type == '').map(i, i.name)",
                "spec.deployItems: no type has the item ",
                "; name the type of the deployer that it is for",
            ),
            rule(
                "aimless",
                "variables.items.filter(i, has(i.target) && (i.target.name == '' || !has(i.target.namespace) || \
                 i.target.namespace == '')).map(i, i.name)",
                "spec.deployItems: a target without name or namespace has the item ",
                "; add what is missing, or leave the target out",
            ),
            rule(
                "mislabelled",
                "variables.items.filter(i, has(i.labels) && !i.labels.all(k, \
                 k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && \
                 size(k) <= 317 && i.labels[k].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))).map(i, i.name)",
                "spec.deployItems: a label that Kubernetes does not take has the item ",
                "; keys are [prefix/]name, keys and values have at most 63 letters, digits, '-', '_' and '.', and begin and \
                 end with a letter or a digit",
            ),
            rule(
                "stranded",
                "variables.items.filter(i, has(i.dependsOn) && \
                 size(i.dependsOn) * size(variables.names) * size(variables.names) <= 800000 && \
                 !i.dependsOn.all(d, d in variables.names)).map(i, i.name)",
                "spec.deployItems: dependsOn names an item that does not exist, in the item ",
                "; name items of the same Execution",
            ),
            rule(
                "selfish",
                "variables.items.filter(i, has(i.dependsOn) && i.name in i.dependsOn).map(i, i.name)",
                "spec.deployItems: depends on itself: ",
                "; remove its own name from its dependsOn",
            ),
            rule(
                "mutual",
                "variables.items.filter(i, has(i.dependsOn) && \
                 size(i.dependsOn) * size(variables.names) * size(variables.names) <= 50000 && \
                 i.dependsOn.exists(d, d != i.name && variables.items.exists(j, j.name == d && has(j.dependsOn) && \
                 i.name in j.dependsOn))).map(i, i.name)",
                "spec.deployItems: depend on each other: ",
                "; remove one of the names from the other one's dependsOn",
            ),
        ],
    },
    KindRules { plural: "installations", variables: INSTALLATION, rules: INSTALLATION_RULES },
    KindRules {
        plural: "targets",
        variables: &[],
        rules: &[rule(
            "twofold",
            "has(object.spec.config) && object.spec.config != null && has(object.spec.secretRef) ? ['config', 'secretRef'] : []",
            "spec: has ",
            " at the same time; keep one of them",
        )],
    },
];

const EXECUTION: &[(&str, &str)] = &[
    (
        "items",
        // Compressed items win where both stand, and are read by the controllers alone.
        "!has(object.spec.deployItems) || has(object.spec.deployItemsCompressed) || (oldObject != null && \
         has(oldObject.spec.deployItems) && oldObject.spec.deployItems == object.spec.deployItems) ? [] : object.spec.deployItems",
    ),
    ("names", "variables.items.map(i, i.name)"),
    (
        "doubles",
        "size(variables.names) > 250 || variables.names.exists(n, size(n) > 63) ? [] : \
         variables.names.filter(n, variables.names.indexOf(n) != variables.names.lastIndexOf(n))",
    ),
];

const INSTALLATION: &[(&str, &str)] = &[
    (
        "importsKept",
        "oldObject != null && has(oldObject.spec.imports) && has(object.spec.imports) && oldObject.spec.imports == object.spec.imports",
    ),
    (
        "data",
        "has(object.spec.imports) && has(object.spec.imports.data) && !variables.importsKept ? object.spec.imports.data : []",
    ),
    (
        "targets",
        "has(object.spec.imports) && has(object.spec.imports.targets) && !variables.importsKept ? object.spec.imports.targets : []",
    ),
    ("imported", "variables.data.map(i, i.name) + variables.targets.map(i, i.name)"),
    (
        "importedTwice",
        "size(variables.imported) > 250 || variables.imported.exists(n, size(n) > 63) ? [] : \
         variables.imported.filter(n, variables.imported.indexOf(n) != variables.imported.lastIndexOf(n))",
    ),
    (
        "exportsKept",
        "oldObject != null && has(oldObject.spec.exports) && has(object.spec.exports) && oldObject.spec.exports == object.spec.exports",
    ),
    (
        "exportedData",
        "has(object.spec.exports) && has(object.spec.exports.data) && !variables.exportsKept ? object.spec.exports.data : []",
    ),
    (
        "exportedTargets",
        "has(object.spec.exports) && has(object.spec.exports.targets) && !variables.exportsKept ? object.spec.exports.targets : []",
    ),
    ("dataNames", "variables.exportedData.map(e, e.name)"),
    ("targetNames", "variables.exportedTargets.map(e, e.name)"),
    (
        "dataTwice",
        "size(variables.dataNames) > 250 || variables.dataNames.exists(n, size(n) > 63) ? [] : \
         variables.dataNames.filter(n, variables.dataNames.indexOf(n) != variables.dataNames.lastIndexOf(n))",
    ),
    (
        "targetTwice",
        "size(variables.targetNames) > 250 || variables.targetNames.exists(n, size(n) > 63) ? [] : \
         variables.targetNames.filter(n, variables.targetNames.indexOf(n) != variables.targetNames.lastIndexOf(n))",
    ),
    ("exportedTwice", "variables.dataTwice + variables.targetTwice"),
    (
        "component",
        "has(object.spec.componentDescriptor) && !(oldObject != null && has(oldObject.spec.componentDescriptor) && \
         oldObject.spec.componentDescriptor == object.spec.componentDescriptor) ? [object.spec.componentDescriptor] : []",
    ),
    (
        "blueprint",
        "oldObject != null && oldObject.spec.blueprint == object.spec.blueprint ? [] : [object.spec.blueprint]",
    ),
];

const INSTALLATION_RULES: &[AdmissionRule] = &[
    rule(
        "misnamed",
        "oldObject == null && has(object.metadata.name) && (size(object.metadata.name) > 58 || \
         !object.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')) ? [object.metadata.name] : []",
        "metadata.name: is no name for an Installation: ",
        "; take at most 58 lower-case letters, digits and dashes, with a letter or a digit at both ends",
    ),
    rule(
        "longPrefix",
        "oldObject == null && has(object.metadata.generateName) && size(object.metadata.generateName) > 53 ? \
         [object.metadata.generateName] : []",
        "metadata.generateName: is too long: ",
        "; take at most 53 characters, so that a generated name has at most 58",
    ),
    rule(
        "namelessImports",
        "(variables.data.exists(i, i.name == '') ? ['data'] : []) + \
         (variables.targets.exists(i, i.name == '') ? ['targets'] : [])",
        "spec.imports: an import has an empty name, in ",
        "; give it the name that the blueprint has for it",
    ),
    rule(
        "repeatedImports",
        "size(variables.importedTwice) == 0 ? [] : [variables.importedTwice[0]]",
        "spec.imports: several imports are called ",
        "; keep one of them: data and targets share their names",
    ),
    rule(
        "ambiguousData",
        "variables.data.filter(i, ![has(i.dataRef) && i.dataRef != '', has(i.secretRef), \
         has(i.configMapRef)].exists_one(s, s)).map(i, i.name)",
        "spec.imports.data: needs exactly one of dataRef, secretRef and configMapRef: ",
        "; remove the others, or add the one that is meant",
    ),
    rule(
        "namelessSources",
        "variables.data.filter(i, (has(i.secretRef) && i.secretRef.name == '') || \
         (has(i.configMapRef) && i.configMapRef.name == '')).map(i, i.name)",
        "spec.imports.data: names no Secret or ConfigMap: ",
        "; add its name to secretRef or configMapRef",
    ),
    rule(
        "ambiguousTargets",
        "variables.targets.filter(i, ![has(i.target) && i.target != '', has(i.targets), \
         has(i.targetListRef) && i.targetListRef != '', has(i.targetMap), \
         has(i.targetMapRef) && i.targetMapRef != ''].exists_one(s, s)).map(i, i.name)",
        "spec.imports.targets: needs exactly one of target, targets, targetListRef, targetMap and targetMapRef: ",
        "; remove the others, or add the one that is meant",
    ),
    rule(
        "emptyTargets",
        "variables.targets.filter(i, (has(i.targets) && '' in i.targets) || \
         (has(i.targetMap) && i.targetMap.exists(k, i.targetMap[k] == ''))).map(i, i.name)",
        "spec.imports.targets: has an empty entry: ",
        "; name a Target in every entry of targets and targetMap, or remove the entry",
    ),
    rule(
        "misnamedKeys",
        "variables.targets.filter(i, has(i.targetMap) && \
         !i.targetMap.all(k, k.matches('^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$'))).map(i, i.name)",
        "spec.imports.targets: has a key in targetMap that cannot be the value of a label: ",
        "; take at most 63 lower-case letters, digits, dots and dashes, with a letter or a digit at both ends",
    ),
    rule(
        "incompleteData",
        "variables.exportedData.filter(e, e.name == '' || e.dataRef == '').map(e, e.name)",
        "spec.exports.data: needs both name and dataRef: ",
        "; add the one that is missing",
    ),
    rule(
        "incompleteTargets",
        "variables.exportedTargets.filter(e, e.name == '' || !has(e.target) || e.target == '').map(e, e.name)",
        "spec.exports.targets: needs both name and target: ",
        "; add the one that is missing",
    ),
    rule(
        "repeatedExports",
        "size(variables.exportedTwice) == 0 ? [] : [variables.exportedTwice[0]]",
        "spec.exports: several exports of data, or several of targets, are called ",
        "; keep one of them",
    ),
    rule(
        "ambiguousBlueprint",
        "variables.blueprint.filter(b, has(b.ref) == has(b.inline)).map(b, has(b.ref) ? 'both' : 'neither')",
        "spec.blueprint: needs exactly one of ref and inline, and has ",
        "; keep the one that is meant",
    ),
    rule(
        "ambiguousComponent",
        "variables.component.filter(c, has(c.ref) == has(c.inline)).map(c, has(c.ref) ? 'both' : 'neither')",
        "spec.componentDescriptor: needs exactly one of ref and inline, and has ",
        "; keep the one that is meant, or leave componentDescriptor out",
    ),
];
