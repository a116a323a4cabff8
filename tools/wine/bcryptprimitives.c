/* Wine 8 lacks this library, from which the standard library of Rust takes its random numbers. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length)
{
	return RtlGenRandom(data, (ULONG)length);
}
