/* Stand-in for tests: wine 8 has no bcryptprimitives.dll, from which Rust takes its random seed. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T size) {
  return SystemFunction036(bytes, (ULONG)size);
}

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, LPVOID reserved) {
  return TRUE;
}
