#include "study/jobs/job/msjob/pod_shape.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "study/jobs/job/msjob/quantity.hpp"

namespace hcclsim::study {
namespace {

/// Types with their keys and the types of these: [T] is a list of T, {T} a map from texts to T. From Kubernetes' API
/// reference, core/v1 and meta/v1 of release 1.31.
constexpr std::string_view api = R"(
ObjectMeta: annotations {text}, creationTimestamp text, deletionGracePeriodSeconds int64, deletionTimestamp text,
  finalizers [text], generateName text, generation int64, labels {text}, managedFields [ManagedFieldsEntry], name text,
  namespace text, ownerReferences [OwnerReference], resourceVersion text, selfLink text, uid text;
ManagedFieldsEntry: apiVersion text, fieldsType text, fieldsV1 any, manager text, operation text, subresource text,
  time text;
OwnerReference: apiVersion text, blockOwnerDeletion bool, controller bool, kind text, name text, uid text;
LabelSelector: matchExpressions [Requirement], matchLabels {text};
Requirement: key text, operator text, values [text];

PodTemplateSpec: metadata ObjectMeta, spec PodSpec;
PodSpec: activeDeadlineSeconds int64, affinity Affinity, automountServiceAccountToken bool, containers [Container],
  dnsConfig DNSConfig, dnsPolicy text, enableServiceLinks bool, hostAliases [HostAlias], hostIPC bool, hostNetwork bool,
  hostPID bool, hostUsers bool, hostname text, imagePullSecrets [Reference], initContainers [Container], nodeName text,
  nodeSelector {text}, os Reference, overhead {quantity}, preemptionPolicy text, priority int32, priorityClassName text,
  readinessGates [ReadinessGate], resourceClaims [PodResourceClaim], resources Resources, restartPolicy text,
  runtimeClassName text,
  schedulerName text, schedulingGates [Reference], securityContext PodSecurityContext, serviceAccount text,
  serviceAccountName text, setHostnameAsFQDN bool, shareProcessNamespace bool, subdomain text,
  terminationGracePeriodSeconds int64, tolerations [Toleration], topologySpreadConstraints [SpreadConstraint],
  volumes [Volume];
Reference: name text;
HostAlias: hostnames [text], ip text;
DNSConfig: nameservers [text], options [NameAndValue], searches [text];
NameAndValue: name text, value text;
ReadinessGate: conditionType text;
PodResourceClaim: name text, resourceClaimName text, resourceClaimTemplateName text, source ClaimSource;
ClaimSource: resourceClaimName text, resourceClaimTemplateName text;
PodSecurityContext: appArmorProfile Profile, fsGroup int64, fsGroupChangePolicy text, runAsGroup int64,
  runAsNonRoot bool, runAsUser int64, seLinuxChangePolicy text, seLinuxOptions SELinuxOptions, seccompProfile Profile,
  supplementalGroups [int64], supplementalGroupsPolicy text, sysctls [NameAndValue], windowsOptions WindowsOptions;
Toleration: effect text, key text, operator text, tolerationSeconds int64, value text;
SpreadConstraint: labelSelector LabelSelector, matchLabelKeys [text], maxSkew int32, minDomains int32,
  nodeAffinityPolicy text, nodeTaintsPolicy text, topologyKey text, whenUnsatisfiable text;
Affinity: nodeAffinity NodeAffinity, podAffinity PodAffinity, podAntiAffinity PodAffinity;
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution [PreferredNodes],
  requiredDuringSchedulingIgnoredDuringExecution NodeSelector;
PreferredNodes: preference NodeSelectorTerm, weight int32;
NodeSelector: nodeSelectorTerms [NodeSelectorTerm];
NodeSelectorTerm: matchExpressions [Requirement], matchFields [Requirement];
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution [PreferredPods],
  requiredDuringSchedulingIgnoredDuringExecution [PodAffinityTerm];
PreferredPods: podAffinityTerm PodAffinityTerm, weight int32;
PodAffinityTerm: labelSelector LabelSelector, matchLabelKeys [text], mismatchLabelKeys [text],
  namespaceSelector LabelSelector, namespaces [text], topologyKey text;

Container: args [text], command [text], env [EnvVar], envFrom [EnvFrom], image text, imagePullPolicy text,
  lifecycle Lifecycle, livenessProbe Probe, name text, ports [ContainerPort], readinessProbe Probe,
  resizePolicy [ResizePolicy], resources Resources, restartPolicy text, securityContext SecurityContext,
  startupProbe Probe, stdin bool,
  stdinOnce bool, terminationMessagePath text, terminationMessagePolicy text, tty bool, volumeDevices [VolumeDevice],
  volumeMounts [VolumeMount], workingDir text;
EnvVar: name text, value text, valueFrom EnvVarSource;
EnvVarSource: configMapKeyRef KeyReference, fieldRef FieldReference, resourceFieldRef ResourceReference,
  secretKeyRef KeyReference;
KeyReference: key text, name text, optional bool;
FieldReference: apiVersion text, fieldPath text;
ResourceReference: containerName text, divisor quantity, resource text;
EnvFrom: configMapRef EnvSource, prefix text, secretRef EnvSource;
EnvSource: name text, optional bool;
Lifecycle: postStart Handler, preStop Handler, stopSignal text;
Handler: exec Exec, httpGet HttpGet, sleep Sleep, tcpSocket TcpSocket;
Exec: command [text];
HttpGet: host text, httpHeaders [NameAndValue], path text, port port, scheme text;
TcpSocket: host text, port port;
Sleep: seconds int64;
Probe: exec Exec, failureThreshold int32, grpc Grpc, httpGet HttpGet, initialDelaySeconds int32, periodSeconds int32,
  successThreshold int32, tcpSocket TcpSocket, terminationGracePeriodSeconds int64, timeoutSeconds int32;
Grpc: port int32, service text;
ContainerPort: containerPort int32, hostIP text, hostPort int32, name text, protocol text;
ResizePolicy: resourceName text, restartPolicy text;
Resources: claims [ResourceClaim], limits {quantity}, requests {quantity};
ResourceClaim: name text, request text;
SecurityContext: allowPrivilegeEscalation bool, appArmorProfile Profile, capabilities Capabilities, privileged bool,
  procMount text, readOnlyRootFilesystem bool, runAsGroup int64, runAsNonRoot bool, runAsUser int64,
  seLinuxOptions SELinuxOptions, seccompProfile Profile, windowsOptions WindowsOptions;
Capabilities: add [text], drop [text];
Profile: localhostProfile text, type text;
SELinuxOptions: level text, role text, type text, user text;
WindowsOptions: gmsaCredentialSpec text, gmsaCredentialSpecName text, hostProcess bool, runAsUserName text;
VolumeDevice: devicePath text, name text;
VolumeMount: mountPath text, mountPropagation text, name text, readOnly bool, recursiveReadOnly text, subPath text,
  subPathExpr text;

Volume: name text, awsElasticBlockStore AwsDisk, azureDisk AzureDisk, azureFile AzureFile, cephfs CephFs,
  cinder SecretVolume, configMap ConfigMap, csi Csi, downwardAPI DownwardApi, emptyDir EmptyDir, ephemeral Ephemeral,
  fc FibreChannel, flexVolume FlexVolume, flocker Flocker, gcePersistentDisk GceDisk, gitRepo GitRepo,
  glusterfs GlusterFs, hostPath HostPath, image Image, iscsi Iscsi, nfs Nfs, persistentVolumeClaim Claim,
  photonPersistentDisk PhotonDisk, portworxVolume PlainVolume, projected Projected, quobyte Quobyte, rbd Rbd,
  scaleIO ScaleIo, secret Secret, storageos StorageOs, vsphereVolume Vsphere;
AwsDisk: fsType text, partition int32, readOnly bool, volumeID text;
AzureDisk: cachingMode text, diskName text, diskURI text, fsType text, kind text, readOnly bool;
AzureFile: readOnly bool, secretName text, shareName text;
CephFs: monitors [text], path text, readOnly bool, secretFile text, secretRef Reference, user text;
SecretVolume: fsType text, readOnly bool, secretRef Reference, volumeID text;
ConfigMap: defaultMode int32, items [KeyToPath], name text, optional bool;
KeyToPath: key text, mode int32, path text;
Csi: driver text, fsType text, nodePublishSecretRef Reference, readOnly bool, volumeAttributes {text};
DownwardApi: defaultMode int32, items [DownwardApiFile];
DownwardApiFile: fieldRef FieldReference, mode int32, path text, resourceFieldRef ResourceReference;
EmptyDir: medium text, sizeLimit quantity;
Ephemeral: volumeClaimTemplate ClaimTemplate;
ClaimTemplate: metadata ObjectMeta, spec ClaimSpec;
ClaimSpec: accessModes [text], dataSource ObjectReference, dataSourceRef ObjectReference, resources ClaimResources,
  selector LabelSelector, storageClassName text, volumeAttributesClassName text, volumeMode text, volumeName text;
ObjectReference: apiGroup text, kind text, name text, namespace text;
ClaimResources: limits {quantity}, requests {quantity};
FibreChannel: fsType text, lun int32, readOnly bool, targetWWNs [text], wwids [text];
FlexVolume: driver text, fsType text, options {text}, readOnly bool, secretRef Reference;
Flocker: datasetName text, datasetUUID text;
GceDisk: fsType text, partition int32, pdName text, readOnly bool;
GitRepo: directory text, repository text, revision text;
GlusterFs: endpoints text, path text, readOnly bool;
HostPath: path text, type text;
Image: pullPolicy text, reference text;
Iscsi: chapAuthDiscovery bool, chapAuthSession bool, fsType text, initiatorName text, iqn text, iscsiInterface text,
  lun int32, portals [text], readOnly bool, secretRef Reference, targetPortal text;
Nfs: path text, readOnly bool, server text;
Claim: claimName text, readOnly bool;
PhotonDisk: fsType text, pdID text;
PlainVolume: fsType text, readOnly bool, volumeID text;
Projected: defaultMode int32, sources [Projection];
Projection: clusterTrustBundle TrustBundle, configMap ProjectedItems, downwardAPI ProjectedFiles, secret ProjectedItems,
  serviceAccountToken AccountToken;
TrustBundle: labelSelector LabelSelector, name text, optional bool, path text, signerName text;
ProjectedItems: items [KeyToPath], name text, optional bool;
ProjectedFiles: items [DownwardApiFile];
AccountToken: audience text, expirationSeconds int64, path text;
Quobyte: group text, readOnly bool, registry text, tenant text, user text, volume text;
Rbd: fsType text, image text, keyring text, monitors [text], pool text, readOnly bool, secretRef Reference, user text;
ScaleIo: fsType text, gateway text, protectionDomain text, readOnly bool, secretRef Reference, sslEnabled bool,
  storageMode text, storagePool text, system text, volumeName text;
Secret: defaultMode int32, items [KeyToPath], optional bool, secretName text;
StorageOs: fsType text, readOnly bool, secretRef Reference, volumeName text, volumeNamespace text;
Vsphere: fsType text, storagePolicyID text, storagePolicyName text, volumePath text;
)";

/// An object: its keys, and their types in the same order.
struct ObjectType {
  std::vector<std::string> keys;
  std::vector<std::string_view> types;
};

const ObjectType& object_type(std::string_view name) {
  static const std::map<std::string_view, ObjectType> types = [] {
    std::map<std::string_view, ObjectType> read;
    for (const std::string_view line : split_trimmed(api, ';')) {
      if (line.empty()) continue;
      const std::size_t colon = line.find(':');
      ObjectType& type = read[line.substr(0, colon)];
      for (const std::string_view member : split_trimmed(line.substr(colon + 1), ',')) {
        const std::size_t blank = member.find(' ');
        type.keys.emplace_back(member.substr(0, blank));
        type.types.push_back(member.substr(blank + 1));
      }
    }
    return read;
  }();
  const auto found = types.find(name);
  if (found == types.end()) internal_error("Kubernetes has no type {}", name);
  return found->second;
}

void require_port(const YamlValue& value) {
  constexpr std::int64_t most = 65535;
  if (value.is_integer()) {
    static_cast<void>(value.integer(1, most));
  } else {
    static_cast<void>(value.text());
  }
}

/// Whether the type is one of a single value, which is checked then.
bool check_scalar(const YamlValue& value, std::string_view type) {
  if (type == "text") {
    static_cast<void>(value.text());
  } else if (type == "bool") {
    static_cast<void>(value.boolean());
  } else if (type == "int32") {
    static_cast<void>(value.integer(INT32_MIN, INT32_MAX));
  } else if (type == "int64") {
    static_cast<void>(value.integer(INT64_MIN, INT64_MAX));
  } else if (type == "quantity") {
    static_cast<void>(read_quantity(value));
  } else if (type == "port") {
    require_port(value);
  } else {
    return type == "any";
  }
  return true;
}

}  // namespace

std::uint64_t read_quantity(const YamlValue& value) {
  const std::optional<std::uint64_t> quantity = parse_k8s_quantity(value.written());
  if (quantity.has_value()) return *quantity;
  value.fail("'{}' is no quantity; accepted: numbers such as 2, 500m, 1.5, 64Gi", printable(value.written()));
}

void require_shape(const YamlValue& value, std::string_view type) {
  if (check_scalar(value, type)) return;
  const std::string_view inner = type.substr(1, type.size() - 2);
  if (type.starts_with('[')) {
    for (const YamlValue& item : value.items()) require_shape(item, inner);
  } else if (type.starts_with('{')) {
    for (const auto& [key, member] : value.members()) require_shape(member, inner);
  } else {
    const ObjectType& object = object_type(type);
    value.accept_only(object.keys);
    for (std::size_t i = 0; i < object.keys.size(); ++i) {
      if (const std::optional<YamlValue> member = value.find(object.keys[i])) require_shape(*member, object.types[i]);
    }
  }
}

}  // namespace hcclsim::study
