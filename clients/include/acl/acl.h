// The Ascend Computing Language: initialisation, and all that acl_base.h and acl_rt.h hold.
// NOLINTBEGIN
#ifndef HCCLSIM_ACL_H
#define HCCLSIM_ACL_H

#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 0
#define ACL_PATCH_VERSION 0

/// To be called once per process before all else; the file of settings is not read.
aclError aclInit(const char *configPath);
aclError aclFinalize(void);
aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion);
/// "Ascend910B2": that of the platform's NPUs; null before aclInit.
const char *aclrtGetSocName(void);
/// What the last function of this thread that failed had to say; null if none has since the last call.
const char *aclGetRecentErrMsg(void);

#ifdef __cplusplus
}
#endif

#endif
// NOLINTEND
